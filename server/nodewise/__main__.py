"""`python -m nodewise` is the command line."""

from nodewise_cli.main import main

if __name__ == "__main__":
    main()
