# Who may speak to the servers: the balancers, each other, sandbox nodes and what scrapes metrics.

resource "aws_security_group" "servers" {
  # checkov:skip=CKV2_AWS_5: the services of modules/role have it
  name        = "${var.name}-servers"
  description = "Servers of the engine"
  vpc_id      = module.network.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "http" {
  for_each = merge(
    { balancer = module.edge.security_group, servers = aws_security_group.servers.id },
    local.has_nodes ? { nodes = module.sandbox_nodes[0].security_group } : {},
    var.monitoring ? { metrics = module.monitoring[0].security_group } : {},
    # It asks for the health of its targets.
    var.flight ? { flight = module.edge.flight_security_group } : {},
  )
  security_group_id            = aws_security_group.servers.id
  referenced_security_group_id = each.value
  description                  = "HTTP from ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = 8080
  to_port                      = 8080
}

resource "aws_vpc_security_group_ingress_rule" "flight" {
  count                        = var.flight ? 1 : 0
  security_group_id            = aws_security_group.servers.id
  referenced_security_group_id = module.edge.flight_security_group
  description                  = "Arrow Flight from its balancer"
  ip_protocol                  = "tcp"
  from_port                    = 9090
  to_port                      = 9090
}

# Sources, models and identity providers may be anywhere: which addresses the engine calls is its own to check.
resource "aws_vpc_security_group_egress_rule" "servers" {
  # checkov:skip=CKV_AWS_382: data sources and models of the users are at addresses that nobody knows beforehand
  security_group_id = aws_security_group.servers.id
  description       = "Anywhere"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# What makes the engine's user of the catalog. It alone has the administrator's password.

locals {
  catalog_user = {
    name                   = "catalog-user"
    image                  = var.postgres_image
    essential              = true
    entryPoint             = ["/bin/sh", "-c"]
    command                = [module.catalog.user_script]
    readonlyRootFilesystem = true
    user                   = "65534:65534"
    environment = [
      { name = "PGHOST", value = module.catalog.connection.host },
      { name = "PGPORT", value = tostring(module.catalog.connection.port) },
      { name = "PGDATABASE", value = module.catalog.connection.database },
      { name = "ENGINE_USER", value = module.catalog.connection.user },
      { name = "CATALOG_AUTHORITY", value = module.catalog.authority },
      { name = "TMPDIR", value = "/dev/shm" },
    ]
    secrets = [
      { name = "PGUSER", valueFrom = "${module.catalog.administrator_secret_arn}:username::" },
      { name = "PGPASSWORD", valueFrom = "${module.catalog.administrator_secret_arn}:password::" },
      { name = "ENGINE_PASSWORD", valueFrom = module.secrets.arns["catalog_password"] },
    ]
    linuxParameters = { initProcessEnabled = true, capabilities = { drop = ["ALL"], add = [] } }
    # Healthy once the user is there.
    healthCheck = {
      command     = ["CMD", "test", "-e", "/dev/shm/reconciled"]
      interval    = 5
      timeout     = 5
      retries     = 10
      startPeriod = 120
    }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        "awslogs-group"         = aws_cloudwatch_log_group.catalog_user.name
        "awslogs-region"        = var.region
        "awslogs-stream-prefix" = "catalog-user"
      }
    }
  }
}

resource "aws_security_group" "catalog_user" {
  name        = "${var.name}-catalog-user"
  description = "Makes the user of the catalog: nothing comes in"
  vpc_id      = module.network.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "catalog_user" {
  for_each          = { "443" = "0.0.0.0/0", "5432" = module.network.cidr }
  security_group_id = aws_security_group.catalog_user.id
  description       = each.key == "443" ? "To AWS" : "To the catalog"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = tonumber(each.key)
  to_port           = tonumber(each.key)
}

resource "aws_cloudwatch_log_group" "catalog_user" {
  # checkov:skip=CKV_AWS_158: CloudWatch encrypts logs with a key of its own; a customer key adds a way to lose them
  # checkov:skip=CKV_AWS_338: it says once a minute that the user is there
  name              = "/engine/${var.name}/catalog-user"
  retention_in_days = 7
}

resource "aws_iam_role" "catalog_user" {
  name = "${var.name}-catalog-user"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "catalog_user" {
  name = "start"
  role = aws_iam_role.catalog_user.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "WriteOwnLogs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.catalog_user.arn}:*"
      },
      {
        Sid      = "ReadTwoPasswords"
        Effect   = "Allow"
        Action   = "secretsmanager:GetSecretValue"
        Resource = [module.catalog.administrator_secret_arn, module.secrets.arns["catalog_password"]]
      },
    ]
  })
}

resource "aws_ecs_task_definition" "catalog_user" {
  family                   = "${var.name}-catalog-user"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = 256
  memory                   = 512
  execution_role_arn       = aws_iam_role.catalog_user.arn
  container_definitions    = jsonencode([local.catalog_user])
}

resource "aws_ecs_service" "catalog_user" {
  name                               = "catalog-user"
  cluster                            = aws_ecs_cluster.this.arn
  task_definition                    = aws_ecs_task_definition.catalog_user.arn
  launch_type                        = "FARGATE"
  platform_version                   = "LATEST"
  desired_count                      = 1
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100
  # Servers start after this: one that cannot sign in to the catalog ends, and ECS gives a deployment up after a few.
  wait_for_steady_state = true
  network_configuration {
    subnets          = module.network.private_subnets
    security_groups  = [aws_security_group.catalog_user.id]
    assign_public_ip = false
  }
  depends_on = [module.secrets, aws_iam_role_policy.catalog_user, aws_vpc_security_group_egress_rule.catalog_user]
}
