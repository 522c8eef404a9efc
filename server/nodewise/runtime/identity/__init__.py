"""Authentication of callers: by certificates, bearer tokens and JSON Web Tokens, as the settings say."""
