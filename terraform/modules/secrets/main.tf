# Secrets of the servers. Their values are write-only: they pass through Terraform's memory, and are in no state, plan or
# file. `version` says when to write them again.

locals {
  # What each secret holds; `try` because values are given only when they are to be written.
  texts = {
    catalog_password = try(var.values.catalog_password, null)
    catalog_url      = try("postgres://${var.catalog.user}:${var.values.catalog_password}@${var.catalog.host}:${var.catalog.port}/${var.catalog.database}?sslmode=verify-full&sslrootcert=${urlencode(var.authority_file)}", null)
    secret_key       = try(var.values.secret_key, null)
    internal_bearer  = try(var.values.internal_bearer, null)
    api_keys         = try("admin:admin:${var.values.admin_token},prometheus:read:${var.values.scrape_token}", null)
    scrape_token     = try(var.values.scrape_token, null)
  }
  names = toset(["catalog_password", "catalog_url", "secret_key", "internal_bearer", "api_keys", "scrape_token"])
}

resource "aws_secretsmanager_secret" "this" {
  # checkov:skip=CKV_AWS_149: encrypted with Secrets Manager's own key; a customer key adds a way to lose them
  # checkov:skip=CKV2_AWS_57: the sealing key must not rotate by itself, and tokens rotate by a higher version
  for_each                = local.names
  name                    = "${var.name}/${each.key}"
  recovery_window_in_days = var.recovery_days
}

resource "aws_secretsmanager_secret_version" "this" {
  for_each  = local.names
  secret_id = aws_secretsmanager_secret.this[each.key].id
  # Sensitive with and without a value: a change of that alone would count as a change of the secret.
  secret_string_wo         = sensitive(local.texts[each.key])
  secret_string_wo_version = var.values_version
}
