import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Terraform, or OpenTofu, over a copy of the modules, with the stand-in for the AWS provider. */

export const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

const TERRAFORM = "terraform";
/** A run of them that hangs is ended. */
const TIMEOUT_MS = 240_000;

export const SECRETS = {
  catalog_password: "passwordpasswordpassword01",
  secret_key: "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
  internal_bearer: "bearerbearerbearerbearer02",
  admin_token: "adminadminadminadminadmi03",
  scrape_token: "scrapescrapescrapescrape04",
};

/** What every environment needs beside its sizes; some of each thing that is there by choice. */
export const VALUES = {
  name: "prod",
  region: "eu-central-1",
  bucket: "acme-engine-prod",
  domain: "engine.example.com",
  zone_id: "Z0123456789ABCDEFGHIJ",
  image: "123456789012.dkr.ecr.eu-central-1.amazonaws.com/engine:1.0.0",
  repository_arn: "arn:aws:ecr:eu-central-1:123456789012:repository/engine",
  reader_principals: ["arn:aws:iam::123456789012:role/spark"],
  flight: true,
  flight_cidrs: ["10.0.0.0/8"],
  alert_topic_arn: "arn:aws:sns:eu-central-1:123456789012:alerts",
  sandbox_nodes: { a: { instance_type: "m7i.xlarge", disk_gib: 200 } },
  sandbox_programs: {
    engine: { url: "https://releases.example.com/engine-1.0.0-linux-x64", sha256: "0".repeat(64) },
    runsc: { url: "https://releases.example.com/runsc", sha512: "0".repeat(128) },
  },
};

export function installProvider(): string {
  return execFileSync(join(REPOSITORY, ".ci/install-terraform-provider"), {
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  }).trim();
}

/** Whichever there is of the two; the capability `terraform` says that one is. */
export function findTool(): string {
  return spawnSync(TERRAFORM, ["version"]).status === 0 ? TERRAFORM : "tofu";
}

export type Run = { code: number; output: string };

export class Modules {
  readonly folder = mkdtempSync(join(tmpdir(), "engine-terraform-"));
  readonly #env: NodeJS.ProcessEnv;

  constructor(settings: string) {
    for (const part of ["terraform", "deploy/prometheus", "deploy/systemd"]) {
      cpSync(join(REPOSITORY, part), join(this.folder, part), { recursive: true });
    }
    this.#env = { ...process.env, TF_CLI_CONFIG_FILE: settings, TF_IN_AUTOMATION: "1", CHECKPOINT_DISABLE: "1" };
  }

  run(module: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
    const cwd = join(this.folder, "terraform", module);
    const { status, stdout, stderr } = spawnSync(findTool(), args, {
      cwd,
      env: { ...this.#env, ...env },
      encoding: "utf8",
      timeout: TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return { code: status ?? -1, output: `${stdout}\n${stderr}` };
  }

  /** As `run`; what fails is an error with the output. */
  must(module: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
    const { code, output } = this.run(module, args, env);
    if (code !== 0) throw new Error(`${module}: ${args.join(" ")} ended with ${code}:\n${output}`);
    return output;
  }

  write(path: string, value: unknown): void {
    writeFileSync(join(this.folder, "terraform", path), JSON.stringify(value));
  }

  read(path: string): string {
    return readFileSync(join(this.folder, "terraform", path), "utf8");
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
