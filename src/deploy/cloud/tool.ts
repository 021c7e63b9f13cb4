import { spawn } from "node:child_process";
import { once } from "node:events";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { systemCodeOf } from "../../core/errors.ts";

/** Terraform or OpenTofu, run in the folder of a root module. */

export const TOOLS = ["terraform", "tofu"] as const;
export type ToolName = (typeof TOOLS)[number];

/** Ephemeral variables and write-only arguments came with it, and locks in S3 a version before. */
const LEAST_VERSION = { major: 1, minor: 11 };
/** More than the plan of the largest deployment takes as JSON. */
const MAX_OUTPUT_CHARS = 64 * 1024 * 1024;
const SHOWN_CHARS = 4_000;

export type ToolRun = { code: number; stdout: string };

export type RunOptions = {
  /** Exit codes that are answers; any other is a failure. */
  codes?: readonly number[];
  /** Shows what the tool writes while it runs, on standard error. */
  isShown?: boolean;
};

export class Tool {
  readonly name: ToolName;
  readonly #context: CliContext;
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;

  /** `env` is added to the environment of this process, without options of the engine and of Terraform's command line. */
  constructor(name: ToolName, context: CliContext, folder: string, env: NodeJS.ProcessEnv) {
    this.name = name;
    this.#context = context;
    this.#folder = folder;
    const own = Object.entries(context.deps.env).filter(([key]) => !/^(ENGINE_|TF_CLI_ARGS|TF_WORKSPACE$)/.test(key));
    this.#env = { ...Object.fromEntries(own), TF_IN_AUTOMATION: "1", TF_INPUT: "0", CHECKPOINT_DISABLE: "1", ...env };
  }

  /** @throws CliError where the tool is not installed, or too old */
  async checkVersion(): Promise<void> {
    const { stdout } = await this.run(["version", "-json"]);
    const [, major = "0", minor = "0"] = /"terraform_version":\s*"(\d+)\.(\d+)\./.exec(stdout) ?? [];
    if (Number(major) > LEAST_VERSION.major) return;
    if (Number(major) === LEAST_VERSION.major && Number(minor) >= LEAST_VERSION.minor) return;
    const least = `${LEAST_VERSION.major}.${LEAST_VERSION.minor}`;
    throw new CliError(`${this.name} is version ${major}.${minor}; install ${least} or newer`);
  }

  /** @throws CliError with what the tool said, and what to do */
  async run(args: readonly string[], { codes = [0], isShown = false }: RunOptions = {}): Promise<ToolRun> {
    const { code, stdout, stderr } = await this.#spawn(args, isShown);
    if (codes.includes(code)) return { code, stdout };
    throw this.#failure(args[0] ?? "", code, `${stderr}\n${isShown ? "" : stdout}`);
  }

  async #spawn(args: readonly string[], isShown: boolean): Promise<ToolRun & { stderr: string }> {
    const child = spawn(this.name, args, { cwd: this.#folder, env: this.#env, stdio: ["ignore", "pipe", "pipe"] });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        texts[name] = (texts[name] + text).slice(-MAX_OUTPUT_CHARS);
        if (isShown) this.#context.deps.stderr.write(text);
      });
    }
    try {
      const [code] = (await once(child, "close")) as [number | null];
      return { code: code ?? -1, ...texts };
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT") throw error;
      const other = TOOLS.find((one) => one !== this.name) ?? "";
      throw new CliError(
        `${this.name} is not in PATH: install it (1.11 or newer), or set "tool" to "${other}" in deployment.json`,
      );
    }
  }

  #failure(command: string, code: number, output: string): CliError {
    const text = output.trim();
    const known = KNOWN.find(({ pattern }) => pattern.test(text));
    const message = known?.say(this.name, this.#folder, text) ?? `${this.name} ${command} ended with ${code}`;
    const next = known === undefined ? "; what was made is recorded: mend the cause and run the command again" : "";
    return new CliError(`${message}${next}`, known?.exitCode ?? EXIT.failed, { detail: text.slice(-SHOWN_CHARS) });
  }
}

type Known = {
  pattern: RegExp;
  say: (tool: string, folder: string, text: string) => string;
  exitCode?: typeof EXIT.auth;
};

/** What people meet, and what they do then. */
const KNOWN: readonly Known[] = [
  {
    pattern: /Error acquiring the state lock/,
    say: (tool, folder, text) => {
      const id = /\bID:\s+([0-9a-f-]{36})/.exec(text)?.[1] ?? "ID";
      return `another run holds the lock of the state: wait for it to end. When none runs: \`cd ${folder} && ${tool} force-unlock ${id}\``;
    },
  },
  {
    pattern:
      /No valid credential sources|NoCredentialProviders|ExpiredToken|InvalidClientTokenId|SignatureDoesNotMatch|failed to refresh cached credentials|failed to get shared config profile/,
    say: () =>
      "AWS was given no valid credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with `aws sso login`",
    exitCode: EXIT.auth,
  },
  {
    pattern: /Saved plan is stale/,
    say: () => "the state has changed since the plan was made: run the command again",
  },
  {
    pattern: /Backend (configuration|type) changed|Backend initialization required/i,
    say: (tool, folder) => `the state is elsewhere now: \`cd ${folder} && ${tool} init -migrate-state\` moves it`,
  },
  {
    pattern: /Failed to (query available provider packages|install provider)/,
    say: (tool) =>
      `${tool} could not get the AWS provider: it needs its registry, or a mirror that TF_CLI_CONFIG_FILE names`,
  },
];
