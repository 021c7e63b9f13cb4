import { existsSync } from "node:fs";
import { join } from "node:path";
import { CliError } from "../../client/failure.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { NOT_FOUND, reasonOf, type RunTool, type ToolResult } from "../run-tool.ts";
import { STOP_SECS, type Notes, type ServiceManager, type ServiceState, type ServiceUnit } from "./definition.ts";
import { argumentWord, assignmentWord, programWord } from "./unit-text.ts";

/** The first wait before the service starts again, and the longest; systemd has the latter from this version on. */
const FIRST_RESTART_SECS = 1;
const LONGEST_RESTART_SECS = 60;
const GROWING_WAITS_SINCE = 254;
/** Where waits do not grow. */
const EVEN_RESTART_SECS = 5;
const MANAGER_START_TIMEOUT_MS = 15_000;
const MANAGER_POLL_MS = 200;

export type SystemdDeps = {
  run: RunTool;
  clock: Clock;
  /** Where the user's configuration is: `$XDG_CONFIG_HOME`, or `~/.config`. */
  configHome: string;
  userId: number;
  /** `$XDG_RUNTIME_DIR`; `su` and `sudo` leave it unset. */
  runtimeDir: string | undefined;
};

/** Units of the user's own systemd, which lingering starts at boot and keeps after the last sign-out. */
export class Systemd<D> implements ServiceManager<D> {
  readonly file: string;
  readonly logCommand: string;
  readonly #service: ServiceUnit<D>;
  readonly #deps: SystemdDeps;
  readonly #runtimeDir: string;
  #version = 0;

  constructor(service: ServiceUnit<D>, deps: SystemdDeps) {
    this.#service = service;
    this.#deps = deps;
    this.logCommand = `journalctl --user --unit ${service.unit}`;
    this.#runtimeDir = deps.runtimeDir ?? `/run/user/${deps.userId}`;
    this.file = join(deps.configHome, "systemd", "user", service.unit);
  }

  render(definition: D): string {
    const { header, remark, words: all, environment } = this.#service.textOf(definition);
    const [program = "", ...words] = all;
    const assignments = Object.entries(environment).map(([name, value]) => assignmentWord(name, value));
    return [
      `# ${header}`,
      `# ${remark}`,
      "[Unit]",
      `Description=${this.#service.description}`,
      "# It starts again however often it fails, after waits.",
      "StartLimitIntervalSec=0",
      "",
      "[Service]",
      "Type=exec",
      `ExecStart=${[programWord(program), ...words.map(argumentWord)].join(" ")}`,
      `Environment=${assignments.join(" ")}`,
      "Restart=always",
      ...this.#waits(),
      "# The server alone is told to stop: it ends its queries itself.",
      "KillMode=mixed",
      `TimeoutStopSec=${STOP_SECS}`,
      "UMask=0077",
      "NoNewPrivileges=yes",
      "",
      "[Install]",
      "WantedBy=default.target\n",
    ].join("\n");
  }

  #waits(): string[] {
    if (this.#version < GROWING_WAITS_SINCE) return [`RestartSec=${EVEN_RESTART_SECS}`];
    return [`RestartSec=${FIRST_RESTART_SECS}`, "RestartSteps=6", `RestartMaxDelaySec=${LONGEST_RESTART_SECS}`];
  }

  async prepare(): Promise<Notes> {
    const { stdout, code } = await this.#deps.run("systemctl", ["--version"]);
    this.#version = Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? Number.NaN);
    if (code === NOT_FOUND || Number.isNaN(this.#version)) {
      throw new CliError("this machine has no systemd: have its own service manager run `engine serve`");
    }
    const notes = await this.#linger();
    await this.#waitForManager(notes);
    return notes;
  }

  async #linger(): Promise<Notes> {
    const { run, userId } = this.#deps;
    const shown = await run("loginctl", ["show-user", String(userId), "--property=Linger"]);
    if (shown.stdout.trim() === "Linger=yes") return [];
    const enabled = await run("loginctl", ["enable-linger", String(userId)]);
    if (enabled.code === 0) return [];
    return [
      `the service stops when you sign out and does not start at boot, for lingering is off (${reasonOf(enabled)}): ` +
        `sudo loginctl enable-linger ${userId}`,
    ];
  }

  /** Lingering starts the user's systemd where nobody has signed in. */
  async #waitForManager(notes: Notes): Promise<void> {
    const { clock } = this.#deps;
    let last: ToolResult | undefined;
    for (const untilMs = clock.monotonicMs() + MANAGER_START_TIMEOUT_MS; clock.monotonicMs() < untilMs;) {
      last = await this.#systemctl("show", "--property=Version");
      if (last.code === 0) return;
      if (!existsSync("/run/systemd/system")) break;
      await sleep(clock, MANAGER_POLL_MS);
    }
    const why = last === undefined ? "" : ` (${reasonOf(last)})`;
    throw new CliError(
      [`the systemd of this user does not answer${why}: sign in as this user and try again`, ...notes].join("; "),
    );
  }

  async activate({ hasChanged }: { hasChanged: boolean }): Promise<void> {
    if (hasChanged) await this.#must("daemon-reload");
    await this.#must("enable", this.#service.unit);
    await this.#must(hasChanged ? "restart" : "start", this.#service.unit);
  }

  async deactivate(): Promise<void> {
    await this.#must("disable", "--now", this.#service.unit);
  }

  async forget(): Promise<void> {
    await this.#must("daemon-reload");
    // Of a unit that had not failed there is nothing to forget, which systemd calls an error.
    await this.#systemctl("reset-failed", this.#service.unit);
  }

  async restart(): Promise<void> {
    await this.#must("restart", this.#service.unit);
  }

  async state(): Promise<ServiceState> {
    const names = ["UnitFileState", "ActiveState", "SubState", "Result", "ActiveEnterTimestamp"];
    const shown = await this.#systemctl("show", this.#service.unit, `--property=${names.join(",")}`);
    if (shown.code === NOT_FOUND) throw new CliError("this machine has no systemd: there are no services to ask for");
    if (shown.code !== 0) throw new CliError(`systemd does not answer: ${reasonOf(shown)}`);
    const values = new Map(shown.stdout.split("\n").map((line) => [line.split("=")[0], line.replace(/^[^=]*=/, "")]));
    const isRunning = values.get("ActiveState") === "active";
    const { ActiveState = "", SubState = "", Result = "" } = Object.fromEntries(values) as Record<string, string>;
    return {
      isEnabled: values.get("UnitFileState") === "enabled",
      isRunning,
      runningSinceMs: isRunning ? timeOf(values.get("ActiveEnterTimestamp") ?? "") : undefined,
      detail: Result === "success" || Result === "" ? `${ActiveState} (${SubState})` : `${ActiveState}: ${Result}`,
    };
  }

  async #must(...args: readonly string[]): Promise<void> {
    const result = await this.#systemctl(...args);
    if (result.code !== 0) throw new CliError(`systemctl --user ${args.join(" ")} failed: ${reasonOf(result)}`);
  }

  #systemctl(...args: readonly string[]): Promise<ToolResult> {
    // Times are printed for people, in one language and zone.
    const env = { XDG_RUNTIME_DIR: this.#runtimeDir, LC_ALL: "C", TZ: "UTC" };
    return this.#deps.run("systemctl", ["--user", ...args], { env });
  }
}

/** `Fri 2026-11-27 01:02:03 UTC`. */
function timeOf(text: string): number | undefined {
  const [, day, time] = /^\w{3} (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$/.exec(text) ?? [];
  return day === undefined ? undefined : Date.parse(`${day}T${time}Z`);
}
