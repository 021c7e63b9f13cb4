import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { miniBrowser } from "../../src/core/capabilities.test-kit.ts";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { CONTROL, pressed, type DrivenBrowser } from "./smoke.test-kit.ts";

/** WebDriver over HTTP reads no console, and runs nothing before a page does: what happens while it is loaded is not seen. */
const WATCH = `
  window.engineTestProblems = [];
  const note = (text) => window.engineTestProblems.push(text);
  addEventListener("securitypolicyviolation", (e) => note("policy: " + e.violatedDirective + " " + e.blockedURI));
  addEventListener("error", (event) => note("threw: " + event.message));
  addEventListener("unhandledrejection", (event) => note("rejected: " + event.reason));
  for (const level of ["error", "warn"]) {
    const write = console[level];
    console[level] = (...words) => (note("console: " + words.join(" ")), write.apply(console, words));
  }
`;

/** Debian's WebKitGTK, driven by WebDriver: playwright drives only a WebKit of its own. */
export async function startWebKit(): Promise<DrivenBrowser> {
  const home = await mkdtemp(join(tmpdir(), "engine-webkit-"));
  const screen = endsWithThisProcess(
    spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    }),
  );
  const display = await firstLine(screen.stdio[3] as Readable);
  const port = await freePort();
  const driver = endsWithThisProcess(
    spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], {
      // The machine has no graphics, and nobody whose folders these would be.
      env: {
        PATH: process.env["PATH"],
        HOME: home,
        XDG_RUNTIME_DIR: home,
        DISPLAY: `:${display}`,
        LIBGL_ALWAYS_SOFTWARE: "1",
        WEBKIT_DISABLE_DMABUF_RENDERER: "1",
      },
      stdio: "ignore",
    }),
  );
  const gone = [screen, driver].map((child) => new Promise<void>((resolve) => child.once("exit", () => resolve())));
  const send = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: JSON.stringify(body) });
    const { value } = (await answer.json()) as { value: { error?: string; message?: string } | null };
    if (!answer.ok) throw new Error(`${path}: ${value?.error ?? answer.status}: ${value?.message ?? ""}`);
    return value;
  };
  await eventually(() =>
    send("GET", "/status").then(
      () => true,
      () => false,
    ),
  );
  const browserOptions = { binary: miniBrowser(), args: ["--automation"] };
  const { sessionId } = (await send("POST", "/session", {
    capabilities: { alwaysMatch: { "webkitgtk:browserOptions": browserOptions } },
  })) as { sessionId: string };
  const session = `/session/${sessionId}`;
  const execute = (script: string): Promise<unknown> => send("POST", `${session}/execute/sync`, { script, args: [] });
  const act = async (actions: object[]): Promise<void> => {
    await send("POST", `${session}/actions`, { actions: [{ type: "key", id: "keys", actions }] });
  };
  return {
    goto: async (url) => {
      await send("POST", `${session}/url`, { url });
      await execute(WATCH);
    },
    evaluate: (expression) => execute(`return ${expression}`),
    type: (text) => act(Array.from(text).flatMap(pressed)),
    pressWithControl: (key) =>
      act([{ type: "keyDown", value: CONTROL }, ...pressed(key), { type: "keyUp", value: CONTROL }]),
    problems: () => execute("return window.engineTestProblems"),
    stop: async () => {
      await send("DELETE", session);
      driver.kill();
      screen.kill();
      await Promise.all(gone);
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Xvfb writes the end of the line by itself, and would end where nobody read that. */
async function firstLine(stream: Readable): Promise<string> {
  for await (const line of createInterface(stream)) return line;
  throw new Error("Xvfb ended before it had a display");
}
