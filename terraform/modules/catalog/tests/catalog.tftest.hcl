mock_provider "aws" {
  mock_resource "aws_db_instance" {
    # OpenTofu wants every attribute of a mocked block.
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
  name          = "prod"
  region        = "eu-central-1"
  vpc_id        = "vpc-1"
  subnets       = ["subnet-1", "subnet-2"]
  client_groups = { servers = "sg-1" }
}

run "keeps_what_was_acknowledged" {
  command = apply
  assert {
    condition     = aws_db_instance.this.multi_az && aws_db_instance.this.deletion_protection && aws_db_instance.this.storage_encrypted && aws_db_instance.this.backup_retention_period == 14 && !aws_db_instance.this.publicly_accessible && !aws_db_instance.this.skip_final_snapshot
    error_message = "The catalog must have a standby, backups, encryption and protection from deletion."
  }
  assert {
    condition     = strcontains(output.authority, "BEGIN CERTIFICATE") && output.connection.user != aws_db_instance.this.username
    error_message = "Clients verify the catalog, and are not its administrator."
  }
}

run "refuses_a_region_whose_authority_it_lacks" {
  command = plan
  variables {
    region = "../../x"
  }
  expect_failures = [var.region]
}
