import { execFileSync, spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { loadConfig } from "../../src/config/load.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { installProvider, Modules, REPOSITORY, SECRETS, VALUES } from "./terraform.test-kit.ts";

/** The modules of `terraform/` without AWS: terraform/testing/README.md says what such a test can find, and what not. */

type Resource = { address: string; type: string; values: Record<string, unknown> };
type StateModule = { resources?: Resource[]; child_modules?: StateModule[] };
type Statement = { Sid?: string; Effect: string; Action: unknown; Resource?: unknown; Principal?: unknown };
type Container = {
  name: string;
  user: string;
  readonlyRootFilesystem: boolean;
  environment: { name: string; value: string }[];
  secrets?: { name: string; valueFrom: string }[];
};

/** Statements with a wildcard, and why there is no narrower one. */
const WILDCARDS: Record<string, string> = {
  RegistryTokenHasNoResource: "the token of a registry is of the whole account: the action knows no resource",
  RefusePlainHttp: "it takes rights away",
};

/** Ends of resources that name a part of one thing: objects under the deployment's prefix, streams of one log group. */
const PARTS = [/^arn:aws:s3:::acme-engine-prod\/engine\/\*$/, /^arn:aws:aws_cloudwatch_log_group:[^*]+:\*$/];

/** What is wider than it need be in a statement; empty where nothing is. */
function widthOf({ Sid = "", Effect, Action, Resource = [], Principal = "" }: Statement): string {
  if (WILDCARDS[Sid] !== undefined) return "";
  if (Effect !== "Allow") return "it refuses, which only RefusePlainHttp should";
  const texts = [Action, Resource, Principal].flatMap((value) => JSON.stringify(value).split(/["[\]{},]/));
  return texts.find((text) => text.includes("*") && !PARTS.some((part) => part.test(text))) ?? "";
}

describe.skipIf(lacks("terraform", "Go", "promtool", "shellcheck"))("terraform/", () => {
  let modules: Modules;
  let resources: Resource[] = [];
  const of = (type: string) => resources.filter((resource) => resource.type === type);

  beforeAll(() => {
    modules = new Modules(installProvider());
  }, 300_000);
  afterAll(() => modules.remove());

  test("is formatted", () => {
    expect(modules.must(".", ["fmt", "-check", "-recursive"])).not.toContain(".tf");
  });

  test("the tests of the modules pass", { timeout: 300_000 }, () => {
    const tested = globSync("{aws,modules/*}/tests", { cwd: join(modules.folder, "terraform") });
    expect(tested).toHaveLength(5);
    for (const module of tested.map((path) => path.replace(/\/tests$/, ""))) {
      modules.must(module, ["init", "-no-color", "-input=false"]);
      expect(modules.must(module, ["test", "-no-color"])).toMatch(/Success! \d+ passed, 0 failed\./);
    }
  });

  test("the three environments can be planned, and differ in their sizes alone", { timeout: 300_000 }, () => {
    const texts = ["main.tf", "variables.tf", "outputs.tf"];
    for (const name of ["small", "medium", "large"]) {
      for (const text of texts) expect(modules.read(`envs/${name}/${text}`)).toBe(modules.read(`envs/small/${text}`));
      modules.write(`envs/${name}/values.auto.tfvars.json`, VALUES);
      modules.must(`envs/${name}`, ["init", "-no-color", "-input=false"]);
      // Every module is one of theirs, so this reads them all.
      modules.must(`envs/${name}`, ["validate", "-no-color"]);
      if (name === "medium") continue;
      expect(modules.must(`envs/${name}`, ["plan", "-no-color", "-input=false"])).toMatch(
        /Plan: \d+ to add, 0 to change/,
      );
    }
  });

  test("what was applied has no drift and no secret, and can be destroyed", { timeout: 300_000 }, () => {
    const env = { TF_VAR_secrets: JSON.stringify(SECRETS) };
    const planned = modules.must("envs/medium", ["plan", "-no-color", "-input=false", "-out=plan"], env);
    const applied = modules.must("envs/medium", ["apply", "-no-color", "-input=false", "plan"], env);
    const shown = modules.must("envs/medium", ["show", "-json", "-no-color"]);
    const planFile = execFileSync("unzip", ["-p", join(modules.folder, "terraform/envs/medium/plan")], {
      encoding: "latin1",
    });
    const state = modules.read("envs/medium/terraform.tfstate");
    for (const text of [planned, applied, shown, planFile, state]) {
      for (const secret of Object.values(SECRETS)) expect(text).not.toContain(secret);
    }
    const { code, output } = modules.run("envs/medium", ["plan", "-no-color", "-input=false", "-detailed-exitcode"]);
    expect(`${code} ${code === 0 ? "" : output}`).toBe("0 ");
    const { root_module: root } = (
      JSON.parse(shown.slice(shown.indexOf("{"))) as { values: { root_module: StateModule } }
    ).values;
    resources = flatten(root);
    expect(resources.length).toBeGreaterThan(150);
    modules.must("envs/medium", ["apply", "-destroy", "-auto-approve", "-no-color", "-input=false"]);
  });

  test("no right is wider than its reason", () => {
    const documents = resources.flatMap(({ address, values }) =>
      [values["policy"], values["assume_role_policy"]]
        .filter((text) => typeof text === "string")
        .map((text) => ({ address, statements: (JSON.parse(text) as { Statement: Statement[] }).Statement })),
    );
    expect(documents.length).toBeGreaterThan(25);
    const wide = documents.flatMap(({ address, statements }) =>
      statements.map((statement) => `${address}: ${widthOf(statement)}`).filter((line) => !line.endsWith(": ")),
    );
    expect(wide).toEqual([]);
  });

  test("nodes for sandboxes may read their own token and do nothing else", () => {
    const policy = of("aws_iam_role_policy").find(({ address }) => address.includes("sandbox_nodes"));
    const token = of("aws_secretsmanager_secret").find(({ address }) => address.includes("sandbox_nodes"));
    expect((JSON.parse(String(policy?.values["policy"])) as { Statement: Statement[] }).Statement).toEqual([
      {
        Sid: "ReadOwnWorkerToken",
        Effect: "Allow",
        Action: "secretsmanager:GetSecretValue",
        Resource: token?.values["arn"],
      },
    ]);
    const [template] = of("aws_launch_template");
    expect(template?.values["metadata_options"]).toMatchObject([
      { http_endpoint: "enabled", http_tokens: "required", http_put_response_hop_limit: 1 },
    ]);
    expect(of("aws_autoscaling_group")[0]?.values["initial_lifecycle_hook"]).toMatchObject([
      { lifecycle_transition: "autoscaling:EC2_INSTANCE_TERMINATING", heartbeat_timeout: 330 },
    ]);
  });

  test("the script that makes a node is one that shellcheck and bash read", () => {
    const [template] = of("aws_launch_template");
    const script = Buffer.from(String(template?.values["user_data"]), "base64").toString();
    const file = join(modules.folder, "node.sh");
    writeFileSync(file, script);
    const { status, stdout } = spawnSync("shellcheck", [file], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
    for (const name of ["modules/catalog/catalog-user.sh", "modules/monitoring/agent.sh"]) {
      execFileSync("shellcheck", [join(REPOSITORY, "terraform", name)], { stdio: "pipe" });
    }
    // The unit is the repository's own.
    expect(script).toContain(readFileSync(join(REPOSITORY, "deploy/systemd/engine-node.service"), "utf8"));
  });

  test("the bucket is private, encrypted and swept of parts; the catalog has a standby, backups and protection", () => {
    expect(of("aws_s3_bucket")[0]?.values["force_destroy"]).toBe(false);
    expect(of("aws_s3_bucket_public_access_block")[0]?.values).toMatchObject({
      block_public_acls: true,
      block_public_policy: true,
      ignore_public_acls: true,
      restrict_public_buckets: true,
    });
    expect(of("aws_s3_bucket_server_side_encryption_configuration")).toHaveLength(1);
    const rules = of("aws_s3_bucket_lifecycle_configuration")[0]?.values["rule"] as Record<string, unknown>[];
    expect(rules[0]?.["abort_incomplete_multipart_upload"]).toEqual([{ days_after_initiation: 3 }]);
    // No rule may take away an object that the catalog knows.
    expect(rules.flatMap(({ transition }) => transition)).toEqual([]);
    expect(rules.flatMap(({ expiration }) => expiration)).toEqual([
      { days: null, date: null, expired_object_delete_marker: true },
    ]);
    expect(of("aws_db_instance")[0]?.values).toMatchObject({
      multi_az: true,
      storage_encrypted: true,
      deletion_protection: true,
      skip_final_snapshot: false,
      publicly_accessible: false,
      manage_master_user_password: true,
      backup_retention_period: 14,
    });
    expect(of("aws_db_parameter_group")[0]?.values["parameter"]).toContainEqual(
      expect.objectContaining({ name: "rds.force_ssl", value: "1" }),
    );
  });

  test("the balancer speaks TLS alone, and waits longer than streams are silent", () => {
    const http = of("aws_lb").find(({ values }) => values["load_balancer_type"] === "application");
    expect(http?.values).toMatchObject({ idle_timeout: 330, enable_deletion_protection: true, internal: false });
    expect(of("aws_lb_listener").map(({ values }) => [values["port"], values["protocol"]])).toEqual([
      [443, "TLS"],
      [443, "HTTPS"],
    ]);
    // Arrow Flight asks nobody who they are.
    expect(of("aws_lb").find(({ values }) => values["load_balancer_type"] === "network")?.values["internal"]).toBe(
      true,
    );
  });

  test("every role is started with options that the engine takes, and secrets come from Secrets Manager", () => {
    const tasks = of("aws_ecs_task_definition").filter(({ address }) => address.includes("module.role["));
    expect(tasks).toHaveLength(6);
    const balancer = of("aws_lb").find(({ values }) => values["load_balancer_type"] === "application");
    const url = `postgres://engine:x@db:5432/engine?sslmode=verify-full&sslrootcert=%2Fvar%2Flib%2Fengine%2Fca.pem`;
    const values: Record<string, string> = {
      ENGINE_CATALOG_URL: url,
      ENGINE_SECRET_KEY: SECRETS.secret_key,
      ENGINE_INTERNAL_BEARER: SECRETS.internal_bearer,
      ENGINE_SECURITY_API_KEYS: `admin:admin:${SECRETS.admin_token},prometheus:read:${SECRETS.scrape_token}`,
    };
    for (const { values: task } of tasks) {
      const role = String(task["family"]).replace("prod-", "");
      const containers = JSON.parse(String(task["container_definitions"])) as Container[];
      for (const container of containers) {
        expect(container).toMatchObject({ user: "10001:10001", readonlyRootFilesystem: true });
      }
      const server = containers.find(({ name }) => name === "engine");
      const plain = server?.environment.map(({ name, value }): [string, string] => [name, value]) ?? [];
      const secret = server?.secrets?.map(({ name }): [string, string] => [name, values[name] ?? ""]) ?? [];
      const { TMPDIR, ...env } = Object.fromEntries([...plain, ...secret]);
      const { config, warnings } = loadConfig({ env, rows: FEATURE_ROWS, userHome: "/nowhere" });
      expect(warnings).toEqual([]);
      expect([config.roles, config.home, TMPDIR]).toEqual([[role], "/var/lib/engine", "/var/lib/engine"]);
      // Edges have peers, and neither the catalog's address nor its certificate authority.
      const isEdge = role === "edge";
      expect(config.queryPeers ?? []).toHaveLength(isEdge ? 1 : 0);
      expect(config.catalogUrl.kind).toBe(isEdge ? "sqlite" : "postgres");
      // A balancer answers 502 when it sends a request on a connection that an edge is just closing.
      const idleSecs = isEdge ? Number(balancer?.values["idle_timeout"]) : 0;
      expect(config.httpKeepAliveSecs).toBeGreaterThan(idleSecs);
      expect(containers).toHaveLength(isEdge ? 1 : 2);
    }
  });

  test("scrapes as the repository does, and has its alerts", () => {
    const task = of("aws_ecs_task_definition").find(({ address }) => address.includes("monitoring"));
    const [agent] = JSON.parse(String(task?.values["container_definitions"])) as Container[];
    const config = agent?.environment.find(({ name }) => name === "SCRAPE_CONFIG")?.value ?? "";
    const file = join(modules.folder, "prometheus.yml");
    writeFileSync(
      file,
      config
        .replace("/prometheus/engine-token", join(modules.folder, "token"))
        .replace(/"?url"?: .*/, '"url": "http://x/"'),
    );
    writeFileSync(join(modules.folder, "token"), "x");
    execFileSync("promtool", ["check", "config", "--agent", file], { stdio: "pipe" });
    for (const part of ["query.prod.internal", "/metrics", "job_name"]) expect(config).toContain(part);
    expect(of("aws_prometheus_rule_group_namespace")[0]?.values["data"]).toBe(
      readFileSync(join(REPOSITORY, "deploy/prometheus/alerts.yml"), "utf8"),
    );
  });
});

function flatten({ resources = [], child_modules: children = [] }: StateModule): Resource[] {
  return [...resources, ...children.flatMap(flatten)];
}
