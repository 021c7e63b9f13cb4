import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { lockFolder } from "./folder-lock.ts";

const MODULE = fileURLToPath(new URL("./folder-lock.ts", import.meta.url));

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "engine-lock-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

describe.skipIf(process.platform !== "linux")("lockFolder", () => {
  it("gives a folder to one at a time, by whichever path", async () => {
    const path = folder();
    symlinkSync(path, join(path, "link"));
    const lock = await lockFolder(path);
    expect(await lockFolder(join(path, "link"))).toBeUndefined();
    expect(await lockFolder(folder())).toBeDefined();
    lock?.close();
    const next = await lockFolder(path);
    expect(next).toBeDefined();
    next?.close();
  });

  it("has the folder free again when its process was killed", async () => {
    const path = folder();
    const script =
      `const { lockFolder } = await import(${JSON.stringify(MODULE)});` +
      `await lockFolder(${JSON.stringify(path)}); console.log("locked"); setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(child.stdout, "data");
    expect(await lockFolder(path)).toBeUndefined();
    child.kill("SIGKILL");
    await once(child, "exit");
    const lock = await lockFolder(path);
    expect(lock).toBeDefined();
    lock?.close();
  });
});
