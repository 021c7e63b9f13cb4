import { expect, test } from "vitest";
import { StartupError } from "../../core/errors.ts";
import { createHttpServer } from "./create.ts";
import { renderError, text, uwsProblem } from "./http.test-kit.ts";
import { loadUws } from "./uws-library.ts";

const options = {
  handler: async () => text("ok"),
  renderError,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
};

test("takes the driver that reads strictly, unless it is told to take the other", async () => {
  const automatic = createHttpServer({ ...options, driver: "auto" });
  const node = createHttpServer({ ...options, driver: "node" });
  expect([automatic.driver, node.driver]).toEqual(["node", "node"]);
  // Never listened; closing must not wait for it.
  await Promise.all([automatic.close(), node.close()]);
});

test("says why the driver it was told to take can't be had", () => {
  // Whether or not the library loads here, it can't have been loaded with such a limit.
  const create = () => createHttpServer({ ...options, driver: "uws", maxHeaderBytes: 2 ** 31 });
  loadUwsIfPossible();
  expect(create).toThrow(StartupError);
  expect(create).toThrow(/uws can't be loaded: .+/);
});

test("does not pass the library's setting on to child processes", () => {
  loadUwsIfPossible();
  expect(process.env["UWS_HTTP_MAX_HEADERS_SIZE"]).toBeUndefined();
});

function loadUwsIfPossible(): void {
  if (uwsProblem === undefined) loadUws(16 * 1024);
}
