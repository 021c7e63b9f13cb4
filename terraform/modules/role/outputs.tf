output "service" {
  description = "Name of the ECS service."
  value       = aws_ecs_service.this.name
}

output "task_role_arn" {
  description = "Role of the servers."
  value       = aws_iam_role.task.arn
}
