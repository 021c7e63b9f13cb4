import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runDeploy } from "./run-deploy.test-kit.ts";

/** `engine deploy --target cloud` up to the tool; `cloud.long.test.ts` runs the real one. */

let home: string;
let programs: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "engine-cloud-"));
  programs = join(home, "bin");
  mkdirSync(programs);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const folder = () => join(home, "deployments", "prod");
const deploy = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runDeploy(home, words, { PATH: `${programs}:/usr/bin:/bin`, ...env });

const INIT = ["init", "--region", "eu-central-1", "--domain", "engine.example.com", "--yes"];

async function initialize(variables: object = { image: "registry.example.com/engine:1", zone_id: "Z1" }) {
  expect(await deploy(INIT)).toMatchObject({ code: 0, stderr: "" });
  change("terraform.tfvars.json", variables);
}

function change(name: string, values: object): void {
  const file = join(folder(), name);
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, "utf8")) as object), ...values }));
}

/** A Terraform that says of every plan what real ones said. */
function installTool(version: string, says = ""): void {
  writeFileSync(join(home, "says"), says);
  const script = `#!/bin/sh
case $1 in
  version) echo '{"terraform_version": "${version}"}' ;;
  init) ;;
  *) cat '${join(home, "says")}' >&2; exit 1 ;;
esac
`;
  writeFileSync(join(programs, "terraform"), script);
  chmodSync(join(programs, "terraform"), 0o755);
}

describe("init", () => {
  it("writes the variables of the modules, for its user alone and without a secret", async () => {
    expect(await deploy(INIT)).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(folder()).toSorted()).toEqual(["deployment.json", "terraform.tfvars.json"]);
    expect(statSync(join(folder(), "terraform.tfvars.json")).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(folder(), "terraform.tfvars.json"), "utf8"))).toMatchObject({
      name: "prod",
      region: "eu-central-1",
      domain: "engine.example.com",
      bucket: expect.stringMatching(/^prod-[0-9a-f]{12}$/),
      roles: { edge: { min: 2 } },
    });
  });

  it("takes the region of the environment, and shows everything with --print-only", async () => {
    const words = ["init", "--domain", "engine.example.com", "--tool", "tofu", "--print-only", "--json"];
    const { code, stdout } = await deploy(words, { AWS_REGION: "eu-west-1" });
    expect(code).toBe(0);
    const { files, commands } = JSON.parse(stdout) as { files: { text: string }[]; commands: string[] };
    expect(files[0]?.text).toContain('"eu-west-1"');
    expect(commands.map((line) => line.split(" ", 2).join(" "))).toEqual(["tofu init", "tofu plan", "tofu apply"]);
    expect(readdirSync(home)).toEqual(["bin"]);
  });

  it.each([
    [["--tool", "sh"], "--tool is "],
    [["--tool", "../terraform"], "--tool is "],
    [["--region", "../../../../etc/x"], "--region is "],
    [["--region", "xx-nowhere-1"], "--region is "],
    [["--domain", "$(id).example.com"], "--domain is "],
    [["--domain", '${file("/etc/passwd")}'], "--domain is "],
    [["--domain", "example"], "--domain is "],
    [["--name", "abcdefghij-abcdefghij"], "at most 20 characters"],
  ])("refuses %j", async (words, sentence) => {
    expect(await deploy([...INIT, ...words])).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
  });

  it("says which flag it needs where it cannot ask", async () => {
    expect(await deploy(["init", "--yes"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--region") });
    const words = ["init", "--yes", "--region", "eu-central-1"];
    expect(await deploy(words)).toMatchObject({ code: 2, stderr: expect.stringContaining("--domain") });
  });
});

describe("up", () => {
  it.each([
    [{}, "names no image"],
    [{ image: "registry.example.com/engine:1" }, '"zone_id"'],
    [{ name: "other" }, 'is of the deployment "other"'],
    [{ domain: "a b" }, "is damaged (domain"],
  ])("says what the variables %j lack", async (variables, sentence) => {
    await initialize(variables);
    expect(await deploy(["up", "--yes"])).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) });
  });

  it("runs no program that the specification could name", async () => {
    await initialize();
    change("deployment.json", { settings: { tool: "sh", stateBucket: null, probeUrl: null } });
    expect(await deploy(["up", "--yes"])).toMatchObject({ code: 1, stderr: expect.stringContaining("damaged (tool") });
    change("deployment.json", { settings: { tool: "tofu", stateBucket: "../x", probeUrl: null } });
    expect(await deploy(["up", "--yes"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("damaged (stateBucket"),
    });
  });

  it("says what to install", async () => {
    await initialize();
    const none = { PATH: programs };
    expect(await deploy(["up"], none)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("terraform is not in PATH: install it"),
    });
    installTool("1.9.8");
    expect(await deploy(["up"])).toMatchObject({ code: 1, stderr: expect.stringContaining("install 1.11 or newer") });
  });

  // What Terraform 1.11 and its provider write.
  it.each([
    [
      'Error: No valid credential sources found\n\n  with provider["registry.terraform.io/hashicorp/aws"]',
      4,
      "AWS was given no valid credentials",
    ],
    [
      "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        5cd08c3e-6c1a-0ea2-95aa-1d3ba2d7d3f5\n  Who: a@b",
      1,
      "terraform force-unlock 5cd08c3e-6c1a-0ea2-95aa-1d3ba2d7d3f5",
    ],
    ["Error: Failed to query available provider packages", 1, "could not get the AWS provider"],
    ["Error: Backend configuration changed", 1, "init -migrate-state"],
    ["Error: creating RDS DB Instance: InstanceQuotaExceeded", 1, "terraform plan ended with 1; what was made"],
  ])("says what to do after %j", async (says, code, sentence) => {
    await initialize();
    installTool("1.11.4", says);
    const run = await deploy(["up", "--yes"]);
    expect(run).toMatchObject({ code, stderr: expect.stringContaining(sentence) });
    expect(run.stderr).toContain(says.split("\n", 1)[0]);
  });
});

it("what was never up is destroyed without the tool", async () => {
  await initialize({});
  expect(await deploy(["status"])).toMatchObject({ code: 1, stdout: expect.stringContaining("not deployed") });
  expect(await deploy(["destroy", "--yes", "--force"])).toMatchObject({ code: 0 });
});
