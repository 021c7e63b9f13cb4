# Machines that run sandboxes: each is a group of one, so that a dead one is replaced, with a worker token of its own.
# Sandboxes have gVisor's kernel between them and the machine, which needs no KVM and so runs on any instance type.

locals {
  # What an instance may take until it is gone: sandboxes end within the drain, and the rest is for shutting down.
  drain_secs = var.drain_timeout_secs + 30
  user_data = {
    for node, _ in var.nodes : node => templatefile("${path.module}/node.sh.tftpl", {
      node           = node
      region         = var.region
      secret         = aws_secretsmanager_secret.token[node].arn
      server_url     = var.server_url
      program_url    = var.program.url
      program_sha256 = var.program.sha256
      runsc_url      = var.runsc.url
      runsc_sha512   = var.runsc.sha512
      drain_secs     = var.drain_timeout_secs
      unit           = file("${path.module}/../../../deploy/systemd/engine-node.service")
    })
  }
}

# `engine worker create --name NODE --capabilities sandbox` prints the token that goes into it.
resource "aws_secretsmanager_secret" "token" {
  # checkov:skip=CKV_AWS_149: encrypted with Secrets Manager's own key; a customer key adds a way to lose it
  # checkov:skip=CKV2_AWS_57: a worker's token is made by the engine, and is good until it is taken back there
  for_each                = var.nodes
  name                    = "${var.name}/worker-token/${each.key}"
  recovery_window_in_days = var.recovery_days
}

resource "aws_iam_role" "node" {
  for_each = var.nodes
  name     = "${var.name}-node-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

# Its own worker token, and nothing else: no bucket, no catalog, no other node's token.
resource "aws_iam_role_policy" "node" {
  for_each = var.nodes
  name     = "read-token"
  role     = aws_iam_role.node[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "ReadOwnWorkerToken"
      Effect   = "Allow"
      Action   = "secretsmanager:GetSecretValue"
      Resource = aws_secretsmanager_secret.token[each.key].arn
    }]
  })
}

resource "aws_iam_instance_profile" "node" {
  for_each = var.nodes
  name     = "${var.name}-node-${each.key}"
  role     = aws_iam_role.node[each.key].name
}

# Nobody connects to a node: it connects to the servers.
resource "aws_security_group" "this" {
  name        = "${var.name}-nodes"
  description = "Sandbox nodes: nothing comes in"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "servers" {
  security_group_id            = aws_security_group.this.id
  description                  = "To the servers"
  referenced_security_group_id = var.server_group
  ip_protocol                  = "tcp"
  from_port                    = 8080
  to_port                      = 8080
}

# Sandboxes reach what their own rules allow; the node, Debian's packages and AWS.
resource "aws_vpc_security_group_egress_rule" "web" {
  for_each          = toset(["80", "443"])
  security_group_id = aws_security_group.this.id
  description       = "Web"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.key)
  to_port           = tonumber(each.key)
}

resource "aws_launch_template" "node" {
  for_each      = var.nodes
  name_prefix   = "${var.name}-node-${each.key}-"
  image_id      = var.image_id
  instance_type = each.value.instance_type
  user_data     = base64encode(local.user_data[each.key])
  ebs_optimized = true
  iam_instance_profile {
    arn = aws_iam_instance_profile.node[each.key].arn
  }
  # Tokens only, and none that gets past the machine itself: a sandbox is one hop further.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }
  network_interfaces {
    associate_public_ip_address = false
    delete_on_termination       = true
    security_groups             = [aws_security_group.this.id]
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_type           = "gp3"
      volume_size           = each.value.disk_gib
      encrypted             = "true"
      delete_on_termination = "true"
    }
  }
  monitoring {
    enabled = true
  }
  tag_specifications {
    resource_type = "instance"
    tags          = { Name = "${var.name}-node-${each.key}" }
  }
}

resource "aws_autoscaling_group" "node" {
  for_each                  = var.nodes
  name                      = "${var.name}-node-${each.key}"
  min_size                  = 1
  max_size                  = 1
  desired_capacity          = 1
  vpc_zone_identifier       = var.subnets
  health_check_type         = "EC2"
  health_check_grace_period = 300
  launch_template {
    id      = aws_launch_template.node[each.key].id
    version = aws_launch_template.node[each.key].latest_version
  }
  # Given with the group, so that no instance ever runs without it. The node sees that it is to go (its metadata say so),
  # and drains; the instance is ended when the time is up. Ending it earlier would take a right on the group, and the node
  # has none but to its token.
  initial_lifecycle_hook {
    name                 = "drain"
    lifecycle_transition = "autoscaling:EC2_INSTANCE_TERMINATING"
    default_result       = "CONTINUE"
    heartbeat_timeout    = local.drain_secs
  }
  tag {
    key                 = "Name"
    value               = "${var.name}-node-${each.key}"
    propagate_at_launch = true
  }
}
