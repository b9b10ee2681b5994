"""Results as one page of HTML that needs no network. Imports pandas, never torch."""
