"""The Hugging Face Hub: where a dataset is, what is there, and how a verified folder gets there whole or not at all."""
