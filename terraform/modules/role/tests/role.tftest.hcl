mock_provider "aws" {}

variables {
  name            = "prod"
  role            = "query"
  region          = "eu-central-1"
  image           = "registry.example.com/engine:1.0.0"
  size            = { cpu = 1024, memory_mib = 2048, min = 1, max = 2, target_cpu = 60, disk_gib = 21 }
  uses_store      = true
  store_policy    = "{}"
  authority       = "PEM"
  authority_file  = "/var/lib/engine/catalog-authority.pem"
  cluster_arn     = "arn:aws:ecs:eu-central-1:123456789012:cluster/prod"
  cluster_name    = "prod"
  subnets         = ["subnet-1", "subnet-2"]
  security_groups = ["sg-1"]
  namespace_id    = "ns-1"
}

run "drains_before_it_is_killed" {
  command = plan
  assert {
    condition     = local.server.stopTimeout == 45 && local.environment.ENGINE_DRAIN_TIMEOUT_SECS == "30"
    error_message = "The server must be done draining before ECS kills it."
  }
  assert {
    condition     = local.server.readonlyRootFilesystem && local.server.user == "10001:10001" && local.server.linuxParameters.capabilities.drop[0] == "ALL"
    error_message = "The container must be locked down as docs/deploy.md has it."
  }
}

run "refuses_what_fargate_does_not_sell" {
  command = plan
  variables {
    size = { cpu = 1024, memory_mib = 1024, min = 1, max = 2, target_cpu = 60, disk_gib = 21 }
  }
  expect_failures = [var.size]
}

run "refuses_more_least_than_most_servers" {
  command = plan
  variables {
    size = { cpu = 1024, memory_mib = 2048, min = 3, max = 2, target_cpu = 60, disk_gib = 21 }
  }
  expect_failures = [var.size]
}
