output "security_group" {
  description = "Security group of the nodes."
  value       = aws_security_group.this.id
}

output "token_secrets" {
  description = "Where each node's worker token belongs."
  value       = { for node, secret in aws_secretsmanager_secret.token : node => secret.name }
}

output "user_data" {
  description = "What each instance runs when it starts; there is no secret in it."
  value       = local.user_data
}
