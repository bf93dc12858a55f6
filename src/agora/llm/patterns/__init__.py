"""Facts found by rules, without a model: few, and those right. `extractor` is the way in.

`sentences` cuts a text into what somebody states in plain prose; `doubt` drops what is asked, guessed, wished or
denied; `own`, `named` and `russian`, `italian`, `english` hold the rules; `phrases` and `relations` turn what a rule
caught into subject, key and value.
"""
