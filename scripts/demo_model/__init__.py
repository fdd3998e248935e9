"""The built-in demo model of tgi: its text, its tokenizer and its training."""
