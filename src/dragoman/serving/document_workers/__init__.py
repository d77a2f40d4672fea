"""Reading and writing of clients' documents, in processes of their own."""
