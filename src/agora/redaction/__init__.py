"""Finds credentials in a text and puts labels in their place. Pure: text in, text and findings out."""
