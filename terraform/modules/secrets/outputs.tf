output "arns" {
  description = "Secrets by name."
  value       = { for name, secret in aws_secretsmanager_secret.this : name => secret.arn }
}
