# Two roles: what ECS needs to start the task, and what the server itself may do.

locals {
  by_ecs = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role" "execution" {
  name               = "${local.full_name}-start"
  assume_role_policy = local.by_ecs
}

resource "aws_iam_role_policy" "execution" {
  name = "start"
  role = aws_iam_role.execution.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "WriteLogsOfThisRole"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.this.arn}:*"
      }],
      length(local.secret_arns) == 0 ? [] : [{
        Sid      = "ReadSecretsOfThisRole"
        Effect   = "Allow"
        Action   = "secretsmanager:GetSecretValue"
        Resource = local.secret_arns
      }],
      [for statement in [
        {
          # The token is of the whole account: AWS knows no resource for this action.
          Sid      = "RegistryTokenHasNoResource"
          Effect   = "Allow"
          Action   = "ecr:GetAuthorizationToken"
          Resource = "*"
        },
        {
          Sid      = "PullThisImage"
          Effect   = "Allow"
          Action   = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability"]
          Resource = var.repository_arn
        },
      ] : statement if var.repository_arn != null],
    )
  })
}

resource "aws_iam_role" "task" {
  name               = local.full_name
  assume_role_policy = local.by_ecs
}

resource "aws_iam_role_policy" "task" {
  count  = var.uses_store ? 1 : 0
  name   = "store"
  role   = aws_iam_role.task.id
  policy = var.store_policy
}
