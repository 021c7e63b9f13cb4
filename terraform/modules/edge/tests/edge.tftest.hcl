mock_provider "aws" {}

variables {
  name            = "prod"
  vpc_id          = "vpc-1"
  subnets         = ["subnet-1", "subnet-2"]
  private_subnets = ["subnet-3", "subnet-4"]
  server_group    = "sg-1"
  domain          = "engine.example.com"
  certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/1b4ad8b7-0000-4000-8000-000000000000"
}

run "without_a_zone_takes_the_certificate_that_is_given" {
  command = plan
  assert {
    condition     = aws_lb_listener.https.certificate_arn == var.certificate_arn && length(aws_acm_certificate.this) == 0 && length(aws_route53_record.this) == 0
    error_message = "Nothing may be made in DNS."
  }
}

run "refuses_to_be_without_a_certificate" {
  command = plan
  variables {
    certificate_arn = null
  }
  expect_failures = [var.certificate_arn]
}

run "refuses_flight_for_everybody" {
  command = plan
  variables {
    flight       = true
    flight_cidrs = ["0.0.0.0/0"]
  }
  expect_failures = [var.flight_cidrs]
}

run "refuses_a_domain_that_is_an_expression" {
  command = plan
  variables {
    domain = "$${file(\"/etc/passwd\")}.example.com"
  }
  expect_failures = [var.domain]
}
