# One role of the engine as an ECS service on Fargate: its task, its rights, its name and its scaling.

locals {
  full_name   = "${var.name}-${var.role}"
  home        = "/var/lib/engine"
  secret_arns = distinct(values(var.secrets))

  server = {
    name                   = "engine"
    image                  = var.image
    essential              = true
    command                = ["server"]
    readonlyRootFilesystem = true
    user                   = "10001:10001"
    environment            = [for key in sort(keys(local.environment)) : { name = key, value = local.environment[key] }]
    secrets                = [for key in sort(keys(var.secrets)) : { name = key, valueFrom = var.secrets[key] }]
    portMappings           = [for port in var.ports : { containerPort = port, protocol = "tcp" }]
    mountPoints            = [{ sourceVolume = "home", containerPath = local.home, readOnly = false }]
    linuxParameters        = { initProcessEnabled = true, capabilities = { drop = ["ALL"], add = [] } }
    ulimits                = [{ name = "nofile", softLimit = 65536, hardLimit = 65536 }]
    stopTimeout            = var.stop_timeout_secs
    dependsOn              = [for container in local.authority : { containerName = container.name, condition = "SUCCESS" }]
    healthCheck = {
      command     = ["CMD", "/opt/engine/node", "/opt/engine/lib/engine/bin/engine.js", "status", "--server", "http://127.0.0.1:8080"]
      interval    = 15
      timeout     = 10
      retries     = 3
      startPeriod = 60
    }
    logConfiguration = local.log
  }

  # Puts the catalog's certificate authority where the server reads it.
  authority = var.authority == null ? [] : [{
    name                   = "authority"
    image                  = var.image
    essential              = false
    entryPoint             = ["/bin/sh", "-c"]
    command                = ["printf '%s\\n' \"$CATALOG_AUTHORITY\" >${var.authority_file}"]
    readonlyRootFilesystem = true
    user                   = "10001:10001"
    environment            = [{ name = "CATALOG_AUTHORITY", value = var.authority }]
    mountPoints            = [{ sourceVolume = "home", containerPath = local.home, readOnly = false }]
    linuxParameters        = { initProcessEnabled = true, capabilities = { drop = ["ALL"], add = [] } }
    logConfiguration       = local.log
  }]

  environment = merge(var.env, {
    ENGINE_ROLES              = var.role
    ENGINE_HOME               = local.home
    ENGINE_DRAIN_TIMEOUT_SECS = tostring(var.stop_timeout_secs - 15)
    # The root is read-only; the home is this task's own disk.
    TMPDIR = local.home
  })

  log = {
    logDriver = "awslogs"
    options = {
      "awslogs-group"         = aws_cloudwatch_log_group.this.name
      "awslogs-region"        = var.region
      "awslogs-stream-prefix" = "server"
    }
  }
}

resource "aws_cloudwatch_log_group" "this" {
  # checkov:skip=CKV_AWS_158: CloudWatch encrypts logs with a key of its own; a customer key adds a way to lose them
  # checkov:skip=CKV_AWS_338: requests are logged with addresses, which are personal data and are not kept for a year
  name              = "/engine/${var.name}/${var.role}"
  retention_in_days = var.log_days
}

resource "aws_ecs_task_definition" "this" {
  family                   = local.full_name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.size.cpu
  memory                   = var.size.memory_mib
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode(concat(local.authority, [local.server]))
  runtime_platform {
    cpu_architecture        = var.architecture
    operating_system_family = "LINUX"
  }
  ephemeral_storage {
    size_in_gib = var.size.disk_gib
  }
  volume {
    name = "home"
  }
}

resource "aws_service_discovery_service" "this" {
  name = var.role
  dns_config {
    namespace_id   = var.namespace_id
    routing_policy = "MULTIVALUE"
    dns_records {
      type = "A"
      ttl  = 5
    }
  }
}

resource "aws_ecs_service" "this" {
  name                               = var.role
  cluster                            = var.cluster_arn
  task_definition                    = aws_ecs_task_definition.this.arn
  launch_type                        = "FARGATE"
  platform_version                   = "LATEST"
  desired_count                      = var.size.min
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = length(var.target_groups) > 0 ? 90 : null
  enable_execute_command             = false
  propagate_tags                     = "SERVICE"
  network_configuration {
    subnets          = var.subnets
    security_groups  = var.security_groups
    assign_public_ip = false
  }
  service_registries {
    registry_arn = aws_service_discovery_service.this.arn
  }
  dynamic "load_balancer" {
    for_each = var.target_groups
    content {
      target_group_arn = load_balancer.value
      container_name   = "engine"
      container_port   = tonumber(load_balancer.key)
    }
  }
  # A version that does not become healthy is taken back by itself.
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
  # A task needs its rights from its first moment.
  depends_on = [aws_iam_role_policy.execution, aws_iam_role_policy.task]
  lifecycle {
    ignore_changes = [desired_count]
  }
}

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "ecs"
  resource_id        = "service/${var.cluster_name}/${aws_ecs_service.this.name}"
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = var.size.min
  max_capacity       = var.size.max
}

resource "aws_appautoscaling_policy" "cpu" {
  name               = "${local.full_name}-cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  target_tracking_scaling_policy_configuration {
    target_value       = var.size.target_cpu
    scale_out_cooldown = 60
    scale_in_cooldown  = 300
    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}
