# A cluster of the engine on AWS: the modules joined. `envs/` are root modules around it.

locals {
  roles          = keys(var.roles)
  namespace      = module.network.namespace
  home           = "/var/lib/engine"
  authority_file = "${local.home}/catalog-authority.pem"
  # What a server opens to the catalog at most (ENGINE_CATALOG_MAX_CONNS), and administrators' connections.
  connections = sum([for role, size in var.roles : role == "edge" ? 0 : size.max * try(tonumber(size.env.ENGINE_CATALOG_MAX_CONNS), 16)]) + 50

  # The servers of all roles.
  common = merge(var.env, {
    ENGINE_TRUSTED_PROXIES = module.network.cidr
    ENGINE_OTLP_ADDR       = "off"
  })
  # Of a role that has the catalog and the bucket: every one but edges.
  stored = {
    ENGINE_OBJSTORE_REGION     = var.region
    ENGINE_OBJSTORE_BUCKET     = module.store.bucket
    ENGINE_OBJSTORE_PATH_STYLE = "false"
    ENGINE_OBJSTORE_ALLOW_HTTP = "false"
    ENGINE_PATH_PREFIX         = var.prefix
    ENGINE_INGEST_MODE         = var.ingest_mode
  }
  # Of edges.
  edge = {
    ENGINE_QUERY_PEERS  = "http://query.${local.namespace}:8080"
    ENGINE_INGEST_PEERS = "http://ingest.${local.namespace}:8080"
    # Longer than the balancer keeps idle connections: it answers 502 when it uses one that an edge is just closing.
    ENGINE_HTTP_KEEP_ALIVE_SECS = tostring(module.edge.idle_timeout_secs + 20)
  }
  shared_secrets = {
    ENGINE_SECURITY_API_KEYS = module.secrets.arns["api_keys"]
    ENGINE_INTERNAL_BEARER   = module.secrets.arns["internal_bearer"]
  }
  stored_secrets = {
    ENGINE_CATALOG_URL = module.secrets.arns["catalog_url"]
    ENGINE_SECRET_KEY  = module.secrets.arns["secret_key"]
  }
  has_nodes = length(var.sandbox_nodes) > 0
}

module "network" {
  source       = "../modules/network"
  name         = var.name
  region       = var.region
  cidr         = var.cidr
  zone_count   = var.zone_count
  nat_per_zone = var.nat_per_zone
  log_days     = var.log_days
}

module "store" {
  source            = "../modules/store"
  name              = var.name
  bucket            = var.bucket
  prefix            = var.prefix
  partition         = var.partition
  force_destroy     = var.force_destroy
  reader_principals = var.reader_principals
}

module "catalog" {
  source              = "../modules/catalog"
  name                = var.name
  region              = var.region
  vpc_id              = module.network.vpc_id
  subnets             = module.network.private_subnets
  client_groups       = { servers = aws_security_group.servers.id, catalog-user = aws_security_group.catalog_user.id }
  instance_class      = var.catalog.instance_class
  storage_gib         = var.catalog.storage_gib
  standby             = var.catalog.standby
  max_connections     = local.connections
  deletion_protection = var.deletion_protection
}

module "secrets" {
  source         = "../modules/secrets"
  name           = var.name
  values         = var.secrets
  values_version = var.secrets_version
  catalog        = module.catalog.connection
  authority_file = local.authority_file
  recovery_days  = var.force_destroy ? 0 : 7
}

module "edge" {
  source              = "../modules/edge"
  name                = var.name
  vpc_id              = module.network.vpc_id
  subnets             = var.internal ? module.network.private_subnets : module.network.public_subnets
  private_subnets     = module.network.private_subnets
  server_group        = aws_security_group.servers.id
  domain              = var.domain
  zone_id             = var.zone_id
  certificate_arn     = var.certificate_arn
  internal            = var.internal
  allowed_cidrs       = var.allowed_cidrs
  flight              = var.flight
  flight_cidrs        = var.flight_cidrs
  access_logs_bucket  = var.access_logs_bucket
  deletion_protection = var.deletion_protection
}

resource "aws_ecs_cluster" "this" {
  name = var.name
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

module "role" {
  source   = "../modules/role"
  for_each = var.roles

  name         = var.name
  role         = each.key
  region       = var.region
  image        = var.image
  architecture = var.architecture
  size = {
    cpu        = each.value.cpu
    memory_mib = each.value.memory_mib
    min        = each.value.min
    max        = each.value.max
    target_cpu = each.value.target_cpu
    disk_gib   = each.value.disk_gib
  }
  env            = merge(local.common, each.key == "edge" ? local.edge : local.stored, each.value.env)
  secrets        = each.key == "edge" ? local.shared_secrets : merge(local.shared_secrets, local.stored_secrets)
  ports          = each.key == "query" ? [8080, 9090] : [8080]
  uses_store     = each.key != "edge"
  store_policy   = module.store.server_policy
  authority      = each.key == "edge" ? null : module.catalog.authority
  authority_file = local.authority_file
  target_groups = merge(
    each.key == "edge" ? { "8080" = module.edge.http_target_group } : {},
    each.key == "query" && var.flight ? { "9090" = module.edge.flight_target_group } : {},
  )
  repository_arn  = var.repository_arn
  log_days        = var.log_days
  cluster_arn     = aws_ecs_cluster.this.arn
  cluster_name    = aws_ecs_cluster.this.name
  subnets         = module.network.private_subnets
  security_groups = [aws_security_group.servers.id]
  namespace_id    = module.network.namespace_id
  # Values of secrets are read when a task starts, and the catalog's user signs in: both must be there by then.
  depends_on = [module.secrets, aws_ecs_service.catalog_user]
}

module "sandbox_nodes" {
  source = "../modules/sandbox-nodes"
  count  = local.has_nodes ? 1 : 0

  name          = var.name
  region        = var.region
  nodes         = var.sandbox_nodes
  program       = var.sandbox_programs.engine
  runsc         = var.sandbox_programs.runsc
  server_url    = "http://query.${local.namespace}:8080"
  vpc_id        = module.network.vpc_id
  subnets       = module.network.private_subnets
  server_group  = aws_security_group.servers.id
  recovery_days = var.force_destroy ? 0 : 7
}

module "monitoring" {
  source = "../modules/monitoring"
  count  = var.monitoring ? 1 : 0

  name             = var.name
  region           = var.region
  roles            = local.roles
  namespace        = local.namespace
  scrape_token_arn = module.secrets.arns["scrape_token"]
  alert_topic_arn  = var.alert_topic_arn
  log_days         = var.log_days
  vpc_id           = module.network.vpc_id
  subnets          = module.network.private_subnets
  server_group     = aws_security_group.servers.id
  cluster_arn      = aws_ecs_cluster.this.arn
}
