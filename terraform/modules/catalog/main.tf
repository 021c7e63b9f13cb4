# The catalog: PostgreSQL with a synchronous standby in another zone. Its administrator's password is made and kept by
# AWS; the engine has a user of its own, which a small service makes (catalog-user.sh).

locals {
  database = "engine"
  user     = "engine"
  port     = 5432
  # The certificate authority of RDS in this region: see authorities/README.md.
  authority = file("${path.module}/authorities/${var.region}.pem")
}

resource "aws_db_subnet_group" "this" {
  name       = "${var.name}-catalog"
  subnet_ids = var.subnets
}

resource "aws_security_group" "this" {
  name        = "${var.name}-catalog"
  description = "The catalog: servers only"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "servers" {
  for_each                     = var.client_groups
  security_group_id            = aws_security_group.this.id
  referenced_security_group_id = each.value
  description                  = "PostgreSQL from ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_db_parameter_group" "this" {
  name_prefix = "${var.name}-catalog-"
  family      = "postgres${split(".", var.engine_version)[0]}"
  description = "The engine's catalog"
  # No session without TLS.
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
  # A static parameter: a change waits for the next restart.
  parameter {
    name         = "max_connections"
    value        = tostring(var.max_connections)
    apply_method = "pending-reboot"
  }
  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }
  parameter {
    name  = "log_statement"
    value = "ddl"
  }
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_db_instance" "this" {
  # checkov:skip=CKV_AWS_118: Performance Insights shows the waits; the agent of the operating system costs and adds a role
  # checkov:skip=CKV_AWS_354: its data is encrypted with a key of AWS; a customer key adds a way to lose it
  # checkov:skip=CKV_AWS_157: `standby` is true unless somebody says otherwise
  # checkov:skip=CKV_AWS_161: the engine signs in by password over TLS; tokens of IAM expire within an open pool
  # checkov:skip=CKV2_AWS_30: slow statements and changes of the schema are logged, by the parameter group
  identifier     = "${var.name}-catalog"
  engine         = "postgres"
  engine_version = var.engine_version
  instance_class = var.instance_class
  port           = local.port
  db_name        = local.database

  username                    = "administrator"
  manage_master_user_password = true

  multi_az               = var.standby
  db_subnet_group_name   = aws_db_subnet_group.this.name
  vpc_security_group_ids = [aws_security_group.this.id]
  publicly_accessible    = false
  ca_cert_identifier     = "rds-ca-rsa2048-g1"
  parameter_group_name   = aws_db_parameter_group.this.name

  storage_type          = "gp3"
  storage_encrypted     = true
  allocated_storage     = var.storage_gib
  max_allocated_storage = var.storage_gib * 10

  backup_retention_period   = var.backup_days
  copy_tags_to_snapshot     = true
  deletion_protection       = var.deletion_protection
  delete_automated_backups  = false
  skip_final_snapshot       = false
  final_snapshot_identifier = "${var.name}-catalog-final"

  auto_minor_version_upgrade      = true
  performance_insights_enabled    = true
  enabled_cloudwatch_logs_exports = ["postgresql", "upgrade"]
}
