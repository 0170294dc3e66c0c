"""What is drawn: widgets that know the model's values and nothing of where they come from."""
