"""What every probe uses: facts that sources tell, commands with a time limit, port rates."""
