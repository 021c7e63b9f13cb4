import { messageOf } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import { INSTALL_CERTIFICATES } from "../../network/egress/environment.ts";
import { followOutput } from "../follow-output.ts";
import type { ExecRequest, Machine } from "../../runtime/runtime.ts";
import { PACKAGE_MANAGERS, type PackageManager, type Template } from "../../contract/images/template.ts";

/** A step of a build did not succeed; the message is for whoever wrote the template. */
export class StepError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StepError";
  }
}

export type StepOptions = {
  /** In PEM; undefined: none. */
  certificates: string | undefined;
  newId: IdSource;
  /** A line of the build's log. */
  say: (line: string) => void;
};

type Command = Pick<ExecRequest, "argv" | "user"> & { env?: Readonly<Record<string, string>>; input?: Uint8Array };

/** On the disk, not in memory; goes with the step. */
const CACHE = "/var/cache/image-build";

/**
 * How packages are installed: as root, to where everybody's PATH leads. The packages are the arguments.
 *
 * The order is that of the template's: npm, pip and cargo may be packages of apt.
 */
const INSTALL: Readonly<Record<PackageManager, { script: string; env: Readonly<Record<string, string>> }>> = {
  apt: {
    script:
      'apt-get update -q && apt-get install -y -q --no-install-recommends -- "$@" && apt-get clean && ' +
      "find /var/lib/apt/lists -type f -delete",
    env: { DEBIAN_FRONTEND: "noninteractive" },
  },
  npm: {
    // One after the other: what a package does when it is installed may need the one before, a newer Node.js say.
    script:
      'for package in "$@"; do npm install --global --no-fund --no-audit --no-update-notifier --logs-max=0 -- "$package" || exit 1; done',
    env: { npm_config_prefix: "/usr/local", npm_config_cache: `${CACHE}/npm` },
  },
  pip: {
    script: 'python3 -m pip install --no-cache-dir --no-input --disable-pip-version-check -- "$@"',
    env: { PIP_BREAK_SYSTEM_PACKAGES: "1", PIP_ROOT_USER_ACTION: "ignore", TMPDIR: CACHE },
  },
  cargo: {
    script: 'cargo install --locked --root /usr/local -- "$@"',
    env: { CARGO_HOME: `${CACHE}/cargo`, CARGO_TARGET_DIR: `${CACHE}/target` },
  },
};

const WRITE_FILE = 'mkdir -p "$(dirname "$1")" && rm -f "$1" && cat > "$1" && chmod "$2" "$1"';

/** Makes a machine what the template says, step by step. Rejects with `StepError`. */
export async function runSteps(machine: Machine, template: Template, options: StepOptions): Promise<void> {
  const { certificates } = options;
  const step = async (name: string, command: Command): Promise<void> => {
    options.say(`# ${name}`);
    try {
      await run(machine, command, options);
    } catch (error) {
      throw new StepError(`${name}: ${messageOf(error)}`, { cause: error });
    }
  };
  if (certificates !== undefined) {
    const argv = ["/bin/sh", "-ec", INSTALL_CERTIFICATES];
    await step("certificates", { argv, user: "root", input: Buffer.from(certificates) });
  }
  for (const manager of PACKAGE_MANAGERS) {
    const packages = template.packages[manager];
    if (packages.length === 0) continue;
    const { script, env } = INSTALL[manager];
    const whole = `mkdir -p ${CACHE} && ${script} && rm -rf ${CACHE}`;
    await step(`packages.${manager}`, { argv: ["/bin/sh", "-ec", whole, "sh", ...packages], user: "root", env });
  }
  for (const [i, { path, contentBase64, mode, user }] of template.files.entries()) {
    const argv = ["/bin/sh", "-ec", WRITE_FILE, "sh", path, mode.toString(8)];
    await step(`files[${i}]`, { argv, user, input: Buffer.from(contentBase64, "base64") });
  }
  for (const [i, command] of template.commands.entries()) {
    await step(`commands[${i}]`, { argv: ["/bin/sh", "-c", command.run], user: command.user });
  }
}

async function run(
  machine: Machine,
  { argv, user, env = {}, input }: Command,
  { newId, say }: StepOptions,
): Promise<void> {
  const exec = await machine.exec({
    id: newId(),
    argv,
    cwd: undefined,
    env,
    user,
    timeoutMs: undefined,
    tty: undefined,
  });
  if (input !== undefined && input.byteLength > 0) await exec.write(input);
  await exec.endInput();
  await followOutput(exec, say);
}
