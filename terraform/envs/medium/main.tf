# A root module around `aws/`. Sizes are in capacity.auto.tfvars.json, beside it belongs a *.auto.tfvars.json of your own.
# The three environments differ in that file alone.

terraform {
  required_version = ">= 1.11.0"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.25"
    }
  }
}

provider "aws" {
  region = var.region
  default_tags {
    tags = { application = "engine", deployment = var.name }
  }
}

module "engine" {
  source = "../../aws"

  name            = var.name
  region          = var.region
  partition       = var.partition
  image           = var.image
  repository_arn  = var.repository_arn
  architecture    = var.architecture
  roles           = var.roles
  env             = var.env
  secrets         = var.secrets
  secrets_version = var.secrets_version
  catalog         = var.catalog
  ingest_mode     = var.ingest_mode

  bucket            = var.bucket
  prefix            = var.prefix
  reader_principals = var.reader_principals

  domain             = var.domain
  zone_id            = var.zone_id
  certificate_arn    = var.certificate_arn
  internal           = var.internal
  allowed_cidrs      = var.allowed_cidrs
  access_logs_bucket = var.access_logs_bucket
  flight             = var.flight
  flight_cidrs       = var.flight_cidrs
  cidr               = var.cidr
  zone_count         = var.zone_count
  nat_per_zone       = var.nat_per_zone

  sandbox_nodes    = var.sandbox_nodes
  sandbox_programs = var.sandbox_programs

  monitoring      = var.monitoring
  alert_topic_arn = var.alert_topic_arn
  log_days        = var.log_days

  deletion_protection = var.deletion_protection
  force_destroy       = var.force_destroy
}
