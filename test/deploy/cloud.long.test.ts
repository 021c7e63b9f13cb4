import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findTool, installProvider } from "../terraform/terraform.test-kit.ts";
import { runDeploy } from "./run-deploy.test-kit.ts";

/** A cloud deployment from `init` to `destroy`, by the real tool with the stand-in for the AWS provider. */

const TIMEOUT_MS = 300_000;
/** Holds the lock that Terraform takes of a state in a file. */
const LOCK = `use Fcntl; open(my $f, '+<', $ARGV[0]) or die; my $l = pack('s s l! l! i', F_WRLCK, 0, 0, 0, 0);
fcntl($f, F_SETLK, $l) or die; $| = 1; print "held\\n"; sleep 120;`;

describe.skipIf(lacks("terraform", "Go"))("a cloud deployment", { timeout: TIMEOUT_MS }, () => {
  let home: string;
  let server: Server;
  let env: Record<string, string>;
  const folder = () => join(home, "deployments", "prod");
  const path = (name: string) => join(folder(), name);
  const deploy = (words: readonly string[], more: Record<string, string> = {}) =>
    runDeploy(home, words, { ...env, ...more });

  function change(name: string, values: object): void {
    writeFileSync(
      path(name),
      JSON.stringify({ ...(JSON.parse(readFileSync(path(name), "utf8")) as object), ...values }),
    );
  }

  /** Every file of the deployment, whatever it holds. */
  function contents(): string {
    const files = readdirSync(folder(), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    return files.map((file) => readFileSync(join(file.parentPath, file.name), "latin1")).join("\n");
  }

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "engine-cloud-"));
    env = { TF_CLI_CONFIG_FILE: installProvider() };
    server = createServer((_request, response) => response.end('{"status":"ok","version":"9.9.9"}'));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }, TIMEOUT_MS);
  afterAll(() => {
    server.close();
    rmSync(home, { recursive: true, force: true });
  });

  test("that fails half-way is finished by the next `up`, with the same secrets, which then are in no file", async () => {
    const init = ["init", "--region", "eu-central-1", "--domain", "engine.example.com", "--yes", "--tool", findTool()];
    expect(await deploy(init)).toMatchObject({ code: 0 });
    change("terraform.tfvars.json", { image: "registry.example.com/engine:1", zone_id: "Z1" });
    const { port } = server.address() as AddressInfo;
    change("deployment.json", {
      settings: { tool: findTool(), stateBucket: null, probeUrl: `http://127.0.0.1:${port}` },
    });

    const failed = await deploy(["up", "--yes"], { PRETEND_FAILURE_OF: "aws_appautoscaling_policy" });
    expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("pretended failure") });
    expect(failed.stderr).toContain("mend the cause and run the command again");
    expect(statSync(path("cloud/secrets.json")).mode & 0o777).toBe(0o600);
    const secrets = JSON.parse(readFileSync(path("cloud/secrets.json"), "utf8")) as Record<string, string>;

    const up = await deploy(["up", "--yes", "--json"]);
    expect(up.code).toBe(0);
    expect(JSON.parse(up.stdout)).toMatchObject({
      url: "https://engine.example.com",
      admin_token: secrets["admin_token"],
    });
    // What was made before is not made again.
    expect(up.stderr).not.toContain("create module.engine.module.catalog");
    expect(existsSync(path("cloud/secrets.json"))).toBe(false);
    const left = contents();
    expect(Object.values(secrets)).toHaveLength(5);
    for (const secret of Object.values(secrets)) {
      for (const text of [left, failed.stderr, up.stderr]) expect(text).not.toContain(secret);
    }
  });

  test("whose variables changed shows the drift, and its health", async () => {
    change("terraform.tfvars.json", { log_days: 60 });
    const { code, stdout } = await deploy(["status", "--json"]);
    expect(code).toBe(1);
    const { state, processes, drift } = JSON.parse(stdout) as { state: string; processes: object[]; drift: string[] };
    expect({ state, processes }).toMatchObject({ state: "healthy", processes: [{ state: "ok", version: "9.9.9" }] });
    expect(drift.length).toBeGreaterThan(5);
    for (const line of drift) expect(line).toMatch(/^change .*aws_cloudwatch_log_group.*: its arguments differ$/);
  });

  test("whose state is locked says so", async () => {
    const holder: ChildProcess = spawn("perl", ["-e", LOCK, path("cloud/terraform.tfstate")]);
    try {
      if (holder.stdout !== null) await once(holder.stdout, "data");
      expect(await deploy(["up", "--yes"])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("another run holds the lock of the state"),
      });
    } finally {
      holder.kill("SIGKILL");
    }
  });

  test("is ended with its data kept, and then for good", async () => {
    expect(await deploy(["destroy", "--yes"])).toMatchObject({ code: 0 });
    const state = readFileSync(path("cloud/terraform.tfstate"), "utf8");
    for (const kept of ["aws_db_instance", "aws_s3_bucket", "aws_secretsmanager_secret", "aws_cloudwatch_log_group"]) {
      expect(state).toContain(`"type": "${kept}"`);
    }
    // What makes the catalog's user stays with the catalog.
    expect(state.match(/"type": "aws_ecs_service"/g)).toHaveLength(1);
    expect(await deploy(["status"])).toMatchObject({ code: 1, stdout: expect.stringContaining("is stopped") });

    const gone = await deploy(["destroy", "--yes", "--force"]);
    expect(gone).toMatchObject({ code: 0, stdout: expect.stringContaining("prod is gone") });
    expect(gone.stderr).toMatch(/Apply complete! Resources: 0 added, [1-9]\d* changed, 0 destroyed\./);
    expect(existsSync(folder())).toBe(false);
  });
});
