"""Encoders: adapters of `agora.ports.encoder.Encoder`, and the model that the package brings along."""
