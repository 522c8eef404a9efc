"""The loaded estimators as they are asked: what each is shown, what it says, whether that can be true."""
