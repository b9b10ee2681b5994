"""Views of rows: cases, tables, figures. Imports pandas, never torch."""
