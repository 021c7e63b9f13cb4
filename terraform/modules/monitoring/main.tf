# Amazon's Prometheus with the repository's own alerts, fed by a Prometheus agent with the repository's own scrape
# configuration; only its targets are replaced, by the names that the roles have here.

locals {
  deploy = "${path.module}/../../../deploy/prometheus"
  home   = "/prometheus"

  written = yamldecode(file("${local.deploy}/prometheus.yml"))
  job     = one([for job in local.written.scrape_configs : job if job.job_name == "engine"])
  scrape_config = yamlencode({
    global = { scrape_interval = local.written.global.scrape_interval }
    scrape_configs = [merge(
      { for key, value in local.job : key => value if key != "static_configs" },
      {
        authorization = merge(local.job.authorization, { credentials_file = "${local.home}/engine-token" })
        dns_sd_configs = [{
          names            = [for role in var.roles : "${role}.${var.namespace}"]
          type             = "A"
          port             = 8080
          refresh_interval = "15s"
        }]
        # The dashboard and the alerts group by the role, which is the first part of the name.
        relabel_configs = [{
          source_labels = ["__meta_dns_name"]
          regex         = "([a-z_]+)\\..*"
          target_label  = "role"
          replacement   = "$1"
        }]
      },
    )]
    remote_write = [{
      url   = "${aws_prometheus_workspace.this.prometheus_endpoint}api/v1/remote_write"
      sigv4 = { region = var.region }
    }]
  })
}

resource "aws_prometheus_workspace" "this" {
  alias = var.name
  logging_configuration {
    log_group_arn = "${aws_cloudwatch_log_group.workspace.arn}:*"
  }
}

resource "aws_prometheus_rule_group_namespace" "alerts" {
  name         = "engine"
  workspace_id = aws_prometheus_workspace.this.id
  data         = file("${local.deploy}/alerts.yml")
}

resource "aws_prometheus_alert_manager_definition" "this" {
  count        = var.alert_topic_arn == null ? 0 : 1
  workspace_id = aws_prometheus_workspace.this.id
  definition = yamlencode({
    alertmanager_config = yamlencode({
      route = { receiver = "topic", group_by = ["alertname", "job"] }
      receivers = [{
        name        = "topic"
        sns_configs = [{ topic_arn = var.alert_topic_arn, sigv4 = { region = var.region } }]
      }]
    })
  })
}

resource "aws_cloudwatch_log_group" "workspace" {
  # checkov:skip=CKV_AWS_158: CloudWatch encrypts logs with a key of its own; a customer key adds a way to lose them
  # checkov:skip=CKV_AWS_338: what evaluates alerts is of interest for days
  name              = "/aws/vendedlogs/engine/${var.name}/prometheus"
  retention_in_days = var.log_days
}

resource "aws_cloudwatch_log_group" "agent" {
  # checkov:skip=CKV_AWS_158: CloudWatch encrypts logs with a key of its own; a customer key adds a way to lose them
  # checkov:skip=CKV_AWS_338: what an agent says of its scrapes is of interest for days
  name              = "/engine/${var.name}/prometheus"
  retention_in_days = var.log_days
}

resource "aws_security_group" "agent" {
  name        = "${var.name}-prometheus"
  description = "The Prometheus agent: nothing comes in"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "servers" {
  security_group_id            = aws_security_group.agent.id
  description                  = "To the servers' metrics"
  referenced_security_group_id = var.server_group
  ip_protocol                  = "tcp"
  from_port                    = 8080
  to_port                      = 8080
}

resource "aws_vpc_security_group_egress_rule" "aws" {
  security_group_id = aws_security_group.agent.id
  description       = "To AWS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_iam_role" "agent" {
  for_each = toset(["start", "run"])
  name     = "${var.name}-prometheus-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "start" {
  name = "start"
  role = aws_iam_role.agent["start"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "WriteOwnLogs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.agent.arn}:*"
      },
      {
        Sid      = "ReadScrapeToken"
        Effect   = "Allow"
        Action   = "secretsmanager:GetSecretValue"
        Resource = var.scrape_token_arn
      },
    ]
  })
}

resource "aws_iam_role_policy" "run" {
  name = "write-metrics"
  role = aws_iam_role.agent["run"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "WriteToThisWorkspace"
      Effect   = "Allow"
      Action   = "aps:RemoteWrite"
      Resource = aws_prometheus_workspace.this.arn
    }]
  })
}

resource "aws_ecs_task_definition" "agent" {
  family                   = "${var.name}-prometheus"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = 256
  memory                   = 1024
  execution_role_arn       = aws_iam_role.agent["start"].arn
  task_role_arn            = aws_iam_role.agent["run"].arn
  container_definitions = jsonencode([{
    name                   = "prometheus"
    image                  = var.prometheus_image
    essential              = true
    readonlyRootFilesystem = true
    user                   = "65534:65534"
    entryPoint             = ["/bin/sh", "-c"]
    command                = [file("${path.module}/agent.sh")]
    environment            = [{ name = "SCRAPE_CONFIG", value = local.scrape_config }, { name = "AGENT_HOME", value = local.home }]
    secrets                = [{ name = "SCRAPE_TOKEN", valueFrom = var.scrape_token_arn }]
    mountPoints            = [{ sourceVolume = "home", containerPath = local.home, readOnly = false }]
    linuxParameters        = { initProcessEnabled = true, capabilities = { drop = ["ALL"], add = [] } }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        "awslogs-group"         = aws_cloudwatch_log_group.agent.name
        "awslogs-region"        = var.region
        "awslogs-stream-prefix" = "agent"
      }
    }
  }])
  volume {
    name = "home"
  }
}

resource "aws_ecs_service" "agent" {
  name             = "prometheus"
  cluster          = var.cluster_arn
  task_definition  = aws_ecs_task_definition.agent.arn
  launch_type      = "FARGATE"
  platform_version = "LATEST"
  # One: two would write each sample twice. It is back within a minute.
  desired_count                      = 1
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100
  network_configuration {
    subnets          = var.subnets
    security_groups  = [aws_security_group.agent.id]
    assign_public_ip = false
  }
}
