import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** Programs of the system that write down how they are called, and answer as a script says. */
export class StandIns {
  readonly folder = mkdtempSync(join(tmpdir(), "engine-stand-ins-"));
  readonly #log = join(this.folder, "calls");

  /** @param body lines of `sh`; `$*` is what the program was called with, `$STATE` a folder of its own */
  add(program: string, body: string): void {
    const bin = join(this.folder, "bin");
    const state = join(this.folder, "state");
    for (const one of [bin, state]) mkdirSync(one, { recursive: true });
    const log = `printf '%s %s\\n' ${program} "$*" >>'${this.#log}'`;
    writeFileSync(join(bin, program), `#!/bin/sh\nSTATE='${state}'\n${log}\n${body}\n`);
    chmodSync(join(bin, program), 0o755);
  }

  get path(): string {
    return [join(this.folder, "bin"), process.env["PATH"] ?? ""].join(delimiter);
  }

  /** How they were called since the last time that this was asked. */
  calls(): string[] {
    const text = existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
    rmSync(this.#log, { force: true });
    return text.split("\n").filter((line) => line !== "");
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** A `systemctl --user` with one unit, which is either running or not, and a `loginctl`. */
export function addSystemd(standIns: StandIns): void {
  standIns.add(
    "systemctl",
    `case "$*" in
--version) echo "systemd 252 (252.38-1)" ;;
"--user start "*|"--user restart "*) touch "$STATE/running" ;;
"--user enable "*) touch "$STATE/enabled" ;;
"--user disable --now "*) rm -f "$STATE/running" "$STATE/enabled" ;;
"--user show engine"*".service "*)
  if [ -e "$STATE/enabled" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
  if [ -e "$STATE/running" ]; then echo ActiveState=active; echo SubState=running
  else echo ActiveState=inactive; echo SubState=dead; fi
  echo Result=success
  echo "ActiveEnterTimestamp=Fri 2026-11-27 01:02:03 UTC" ;;
esac`,
  );
  standIns.add(
    "loginctl",
    `case "$1" in
show-user) if [ -e "$STATE/linger" ]; then echo Linger=yes; else echo Linger=no; fi ;;
enable-linger) if [ -e "$STATE/refuse" ]; then echo "Access denied" >&2; exit 1; fi; touch "$STATE/linger" ;;
esac`,
  );
}
