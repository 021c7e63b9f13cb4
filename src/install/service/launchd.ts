import { join } from "node:path";
import { CliError } from "../../client/failure.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { NOT_FOUND, reasonOf, type RunTool, type ToolResult } from "../run-tool.ts";
import { STOP_SECS, type Notes, type ServiceManager, type ServiceState, type ServiceUnit } from "./definition.ts";
import { plistText } from "./plist.ts";

/** launchd starts what ends no sooner than so long after the start before. */
const RESTART_SECS = 10;
const UNLOAD_POLL_MS = 200;

export type LaunchdDeps = { run: RunTool; clock: Clock; userHome: string; userId: number };

/** Agents of launchd: they run while the user is signed in. */
export class Launchd<D> implements ServiceManager<D> {
  readonly file: string;
  readonly logCommand: string;
  readonly #service: ServiceUnit<D>;
  readonly #deps: LaunchdDeps;
  readonly #domain: string;

  constructor(service: ServiceUnit<D>, deps: LaunchdDeps) {
    this.#service = service;
    this.#deps = deps;
    this.#domain = `gui/${deps.userId}`;
    this.file = join(deps.userHome, "Library", "LaunchAgents", `${service.label}.plist`);
    this.logCommand = `tail ${service.log} in the folder of ENGINE_HOME`;
  }

  render(definition: D): string {
    const { header, words, environment, home } = this.#service.textOf(definition);
    const log = join(home, this.#service.log);
    return plistText(
      {
        Label: this.#service.label,
        ProgramArguments: [...words],
        EnvironmentVariables: { ...environment },
        RunAtLoad: true,
        KeepAlive: true,
        ThrottleInterval: RESTART_SECS,
        ExitTimeOut: STOP_SECS,
        Umask: 0o077,
        StandardOutPath: log,
        StandardErrorPath: log,
      },
      header,
    );
  }

  async prepare(): Promise<Notes> {
    const found = await this.#deps.run("launchctl", ["print", this.#domain]);
    if (found.code === 0) return [];
    throw new CliError(
      `launchd has no session of this user (${reasonOf(found)}): sign in at the screen of this machine first`,
    );
  }

  async activate({ hasChanged }: { hasChanged: boolean }): Promise<void> {
    if (hasChanged) await this.#unload();
    await this.#must("enable", this.#target);
    if (hasChanged || !(await this.#isLoaded())) await this.#must("bootstrap", this.#domain, this.file);
  }

  async deactivate(): Promise<void> {
    await this.#unload();
  }

  async forget(): Promise<void> {
    // launchd keeps nothing of an agent without a file.
  }

  async restart(): Promise<void> {
    await this.#must("kickstart", "-k", this.#target);
  }

  async state(): Promise<ServiceState> {
    const printed = await this.#launchctl("print", this.#target);
    if (printed.code === NOT_FOUND) throw new CliError("launchctl is not there: there are no services to ask for");
    const isLoaded = printed.code === 0;
    const disabled = await this.#launchctl("print-disabled", this.#domain);
    const state = /^\s*state = (.+)$/m.exec(printed.stdout)?.[1] ?? "not loaded";
    const processId = /^\s*pid = (\d+)$/m.exec(printed.stdout)?.[1];
    return {
      isEnabled: isLoaded && !new RegExp(`"${this.#service.label}" => (disabled|true)`).test(disabled.stdout),
      isRunning: processId !== undefined,
      runningSinceMs: processId === undefined ? undefined : await this.#startOf(processId),
      detail: state,
    };
  }

  /** The time at which a process started, by `ps`: launchd does not say. */
  async #startOf(processId: string): Promise<number | undefined> {
    const { code, stdout } = await this.#deps.run("ps", ["-o", "etime=", "-p", processId]);
    const [, days = "0", hours = "0", minutes, seconds] =
      /^\s*(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)\s*$/.exec(code === 0 ? stdout : "") ?? [];
    if (minutes === undefined) return undefined;
    const elapsedSecs = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
    return this.#deps.clock.nowMs() - elapsedSecs * 1000;
  }

  get #target(): string {
    return `${this.#domain}/${this.#service.label}`;
  }

  async #unload(): Promise<void> {
    if (!(await this.#isLoaded())) return;
    await this.#must("bootout", this.#target);
    // It returns before the server has stopped, and nothing can be loaded before that.
    const { clock } = this.#deps;
    for (const untilMs = clock.monotonicMs() + STOP_SECS * 1000; await this.#isLoaded();) {
      if (clock.monotonicMs() > untilMs)
        throw new CliError(`launchd did not stop ${this.#service.label} in ${STOP_SECS} s`);
      await sleep(clock, UNLOAD_POLL_MS);
    }
  }

  async #isLoaded(): Promise<boolean> {
    return (await this.#launchctl("print", this.#target)).code === 0;
  }

  async #must(...args: readonly string[]): Promise<void> {
    const result = await this.#launchctl(...args);
    if (result.code !== 0) throw new CliError(`launchctl ${args.join(" ")} failed: ${reasonOf(result)}`);
  }

  #launchctl(...args: readonly string[]): Promise<ToolResult> {
    return this.#deps.run("launchctl", args);
  }
}
