output "connection" {
  description = "Where the catalog is, without a password."
  value = {
    host     = aws_db_instance.this.address
    port     = local.port
    database = local.database
    user     = local.user
  }
}

output "administrator_secret_arn" {
  description = "Secret with the administrator's name and password, which AWS made."
  value       = aws_db_instance.this.master_user_secret[0].secret_arn
}

output "authority" {
  description = "Certificate authority (PEM) that clients verify the catalog with."
  value       = local.authority
}

output "user_script" {
  description = "Makes the engine's own user; run by the administrator."
  value       = file("${path.module}/catalog-user.sh")
}

output "identifier" {
  description = "Name of the instance."
  value       = aws_db_instance.this.identifier
}
