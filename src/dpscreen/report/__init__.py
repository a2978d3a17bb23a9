"""Results made visible: tables, plots and pages."""
