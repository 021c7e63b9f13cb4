# Without any provider: what is built for given variables, and which variables are refused.

mock_provider "aws" {
  mock_data "aws_availability_zones" {
    defaults = { names = ["eu-central-1a", "eu-central-1b", "eu-central-1c"] }
  }
  # OpenTofu wants every attribute of a mocked block, and a value where Terraform makes one up.
  mock_resource "aws_acm_certificate" {
    defaults = {
      domain_validation_options = [{
        domain_name           = "engine.example.com"
        resource_record_name  = "_1.engine.example.com"
        resource_record_type  = "CNAME"
        resource_record_value = "_2.acm-validations.aws"
      }]
    }
  }
  mock_resource "aws_db_instance" {
    defaults = {
      master_user_secret = [{
        kms_key_id    = "arn:aws:kms:eu-central-1:123456789012:key/administrator"
        secret_arn    = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:administrator"
        secret_status = "active"
      }]
    }
  }
}

variables {
  name    = "prod"
  region  = "eu-central-1"
  bucket  = "acme-engine-prod"
  domain  = "engine.example.com"
  zone_id = "Z0123456789ABCDEFGHIJ"
  image   = "registry.example.com/engine:1.0.0"
  roles = {
    edge       = { cpu = 512, memory_mib = 1024, min = 2, max = 4 }
    query      = { cpu = 2048, memory_mib = 4096, min = 2, max = 4, disk_gib = 40 }
    ingest     = { cpu = 1024, memory_mib = 2048, min = 2, max = 4 }
    committer  = { cpu = 512, memory_mib = 1024, min = 2, max = 2 }
    compaction = { cpu = 1024, memory_mib = 2048, min = 2, max = 2, disk_gib = 60 }
    worker     = { cpu = 1024, memory_mib = 2048, min = 2, max = 2, env = { ENGINE_CATALOG_MAX_CONNS = "4" } }
  }
}

run "joins" {
  command = apply
  variables {
    secrets = {
      catalog_password = "0123456789abcdef0123456789abcdef"
      secret_key       = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
      internal_bearer  = "0123456789abcdef0123456789abcdef"
      admin_token      = "0123456789abcdef0123456789abcdef"
      scrape_token     = "0123456789abcdef0123456789abcdef"
    }
  }
  assert {
    condition     = output.url == "https://engine.example.com" && output.bucket != "" && length(output.roles) == 6
    error_message = "The outputs must name address, bucket and roles."
  }
  assert {
    condition     = local.connections == 4 * 16 + 4 * 16 + 2 * 16 + 2 * 16 + 2 * 4 + 50
    error_message = "The catalog must take the connections of all servers but edges, and some for administrators."
  }
  assert {
    condition     = output.reader_role == null && output.flight == null && length(output.worker_token_secrets) == 0
    error_message = "Without principals, Flight and nodes there is nothing of them."
  }
}

run "refuses" {
  command = plan
  variables {
    name          = "a\"; }"
    image         = "registry.example.com/engine"
    roles         = { all = { cpu = 512, memory_mib = 1024, min = 1, max = 1 } }
    env           = { ENGINE_ADMIN_PASSWORD = "hunter2" }
    sandbox_nodes = { a = { instance_type = "m7i.xlarge", disk_gib = 200 } }
  }
  expect_failures = [var.name, var.image, var.roles, var.env, var.sandbox_programs]
}

run "refuses_more_servers_than_a_name_has_addresses" {
  command = plan
  variables {
    roles = {
      edge       = { cpu = 512, memory_mib = 1024, min = 2, max = 9 }
      query      = { cpu = 2048, memory_mib = 4096, min = 2, max = 4, disk_gib = 40 }
      ingest     = { cpu = 1024, memory_mib = 2048, min = 2, max = 4 }
      committer  = { cpu = 512, memory_mib = 1024, min = 2, max = 2 }
      compaction = { cpu = 1024, memory_mib = 2048, min = 2, max = 2, disk_gib = 60 }
      worker     = { cpu = 1024, memory_mib = 2048, min = 2, max = 2 }
    }
  }
  expect_failures = [var.roles]
}
