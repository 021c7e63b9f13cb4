output "security_group" {
  description = "Security group of the balancer."
  value       = aws_security_group.this.id
}

output "flight_security_group" {
  description = "Security group of the balancer for Arrow Flight; null without it."
  value       = one(aws_security_group.flight[*].id)
}

output "http_target_group" {
  description = "Where edges register. Known once the listener is there: ECS refuses a group without one."
  value       = aws_lb_listener.https.default_action[0].target_group_arn
}

output "flight_target_group" {
  description = "Where query servers register for Arrow Flight; null without it."
  value       = one(aws_lb_listener.flight[*].default_action[0].target_group_arn)
}

output "dns_name" {
  description = "Name of the balancer: what the domain points to where DNS is elsewhere."
  value       = aws_lb.this.dns_name
}

output "flight_dns_name" {
  description = "Name of the balancer for Arrow Flight; null without it."
  value       = one(aws_lb.flight[*].dns_name)
}

output "idle_timeout_secs" {
  description = "Seconds for which the HTTP balancer keeps an idle connection."
  value       = var.idle_timeout_secs
}
