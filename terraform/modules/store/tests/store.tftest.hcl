mock_provider "aws" {}

variables {
  name   = "prod"
  bucket = "acme-engine-prod"
}

run "has_no_reader_unless_it_is_named" {
  command = plan
  assert {
    condition     = length(aws_iam_role.reader) == 0
    error_message = "Nobody was named."
  }
}

run "refuses_a_prefix_that_widens_the_rights" {
  command = plan
  variables {
    prefix = "engine*"
  }
  expect_failures = [var.prefix]
}

run "refuses_an_account_as_reader" {
  command = plan
  variables {
    reader_principals = ["arn:aws:iam::123456789012:root"]
  }
  expect_failures = [var.reader_principals]
}

run "refuses_everybody_as_reader" {
  command = plan
  variables {
    reader_principals = ["*"]
  }
  expect_failures = [var.reader_principals]
}
