import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

const ENV = {
  ENGINE_LOG_LEVEL: "info",
  ENGINE_SANDBOX_IMAGE_BUILD_DISK_BYTES: "256MiB",
  ENGINE_SANDBOX_IMAGE_BUILD_TIMEOUT_SECS: "10",
};

const FIRST = `
base = "host"
[variables]
greeting = "hello"
[[files]]
path = "/opt/made/greeting"
content = "{{greeting}} 😀"
[[files]]
path = "/home/agent/.own"
content_base64 = "AAEC"
mode = "0600"
user = "agent"
[[commands]]
run = "id -un > /opt/made/who; echo $COLOUR > /opt/made/colour; echo gone > /opt/made/gone; rm /etc/profile"
[environment]
COLOUR = "red"
SHAPE = "round"
`;

describeInCage("images of a server", () => {
  const server = sandboxServer(() => ENV);
  const { client } = server;

  const images = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${server.url}/api/v1/images${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, json: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };

  /** Waits for the end of a build; resolves with what is said of it. */
  const built = async (template: string, variables = {}): Promise<unknown> => {
    const asked = await images("POST", "/build", { provider: "codex", template_source: template, variables });
    expect(asked).toMatchObject({ status: 202, json: { status: "queued", provider: "codex", region: "local" } });
    for (;;) {
      const { json } = await images("GET", `/builds/${String(fieldOf(asked.json, "build_id"))}`);
      if (!["queued", "building"].includes(String(fieldOf(json, "status")))) return json;
      await pause(100);
    }
  };
  const imageOf = async (template: string, variables = {}): Promise<string> => {
    const build = await built(template, variables);
    expect(build).toMatchObject({ status: "succeeded", error: null });
    return String(fieldOf(build, "image_id"));
  };

  it("are built from templates, on each other, and sandboxes made of them", { timeout: TIMEOUT_MS }, async () => {
    const first = await imageOf(FIRST, { greeting: "good day" });
    const one = await client.create({ image: first, env_vars: { SHAPE: "square" } });
    expect(
      await client.exec(
        one,
        "cat /opt/made/greeting; echo; cat /opt/made/who /opt/made/colour; stat -c '%U %a' ~/.own; od -An -tx1 ~/.own; ls /etc/profile; echo $COLOUR $SHAPE; hostname; touch /opt/made/x",
      ),
    ).toEqual({
      stdout: expect.stringMatching(/^good day 😀\nroot\nred\nagent 600\n 00 01 02\nred square\nsandbox-\w+\n$/),
      exitCode: 1,
    });
    const second = await imageOf(
      `base = "${first}"\n[[commands]]\nrun = "rm /opt/made/gone; echo 2 >> /opt/made/who"\n[environment]\nSHAPE = "flat"\n`,
    );
    const two = await client.create({ image: second, persistence: "persistent" });
    const look = "cat /opt/made/who; ls /opt/made; echo $COLOUR $SHAPE";
    expect(await client.exec(two, look)).toEqual({
      stdout: "root\n2\ncolour\ngreeting\nwho\nred flat\n",
      exitCode: 0,
    });
    // What was below is as it was.
    expect((await client.exec(one, "cat /opt/made/gone /opt/made/who")).stdout).toBe("gone\nroot\n");
    const { json } = await images("GET", "?provider=codex&region=local");
    expect(json).toMatchObject({ images: [{ image_id: second, status: "available" }, { image_id: first }] });
    expect((await images("GET", "?region=elsewhere")).json).toEqual({ images: [] });

    // Deleted: those that have it go on, new ones do not get it.
    for (const id of [first, second]) expect((await images("DELETE", `/${id}`)).status).toBe(204);
    expect(await images("DELETE", `/${second}`)).toMatchObject({ status: 404 });
    expect(await client.call("POST", "", { agent_provider: "codex", image: second })).toMatchObject({
      status: 404,
      json: { error: { code: "image_not_found" } },
    });
    await client.call("POST", `/${two}/stop`);
    await client.call("POST", `/${two}/start`);
    await client.reaches(two, "running");
    expect(await client.exec(two, look)).toMatchObject({ exitCode: 0 });
  });

  it("fail with the step that did, and leave no machine", { timeout: TIMEOUT_MS }, async () => {
    expect(await built('base = "host"\n[[commands]]\nrun = "echo one; echo two >&2; exit 3"')).toMatchObject({
      status: "failed",
      image_id: null,
      error: "commands[0]: it ended with exit code 3; its last line: two",
    });
    expect(await built('base = "host"\n[[commands]]\nrun = "exec sleep 100"')).toMatchObject({
      status: "failed",
      error: "the build took longer than 10 s",
    });
    // A file inside, wherever a link in the machine leads.
    const escape =
      'base = "host"\n[[commands]]\nrun = "ln -s / /opt/up; mkdir -p /opt/up/opt/in; cat /opt/up/etc/shadow"';
    expect(await built(escape)).toMatchObject({ status: "failed" });
    expect(await images("POST", "/build", { provider: "codex", template_source: "base = 3" })).toMatchObject({
      status: 400,
      json: { error: { code: "config_validation_error", message: expect.stringContaining("template_source.base") } },
    });
  });
});
