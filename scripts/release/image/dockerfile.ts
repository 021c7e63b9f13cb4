/**
 * The configuration of an image, read from a stage of a Dockerfile, so that the image that the release writes itself and
 * the one that `docker build` makes cannot differ in it. Reads the few forms that our own Dockerfile has, and throws for
 * any other.
 */

/** `config` of an OCI image; `Healthcheck` is Docker's extension of it, which Docker reads from OCI images as well. */
export type ImageConfig = {
  User: string;
  ExposedPorts: Record<string, object>;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  Volumes: Record<string, object>;
  WorkingDir: string;
  Labels: Record<string, string>;
  StopSignal: string;
  Healthcheck: { Test: string[]; Interval: number; Timeout: number; StartPeriod: number; Retries: number };
};

type Instruction = { word: string; rest: string };

const NANOSECONDS = 1_000_000_000;

/** @throws Error for an instruction, or a form of one, that this does not read. */
export function configOf(dockerfile: string, stage: string, args: Readonly<Record<string, string>>): ImageConfig {
  const config: Partial<ImageConfig> = { ExposedPorts: {}, Env: [], Volumes: {}, Labels: {} };
  for (const { word, rest } of stageOf(instructionsOf(dockerfile), stage)) {
    // These make files, which the layers have.
    if (["ARG", "COPY", "RUN"].includes(word)) continue;
    const read = READERS[word];
    if (read === undefined) throw new Error(`the Dockerfile has ${word}, which the image's writer does not know`);
    read(
      config,
      rest.replaceAll(/\$\{(\w+)\}/g, (_whole, name: string) => argument(args, name)),
    );
  }
  const missing = NEEDED.filter((key) => config[key] === undefined);
  if (missing.length > 0) throw new Error(`the stage ${stage} of the Dockerfile does not say ${missing.join(", ")}`);
  return config as ImageConfig;
}

const NEEDED = ["User", "Entrypoint", "Cmd", "WorkingDir", "StopSignal", "Healthcheck"] as const;

const READERS: Readonly<Record<string, (config: Partial<ImageConfig>, rest: string) => void>> = {
  USER: (config, rest) => void (config.User = rest),
  WORKDIR: (config, rest) => void (config.WorkingDir = rest),
  STOPSIGNAL: (config, rest) => void (config.StopSignal = rest),
  ENTRYPOINT: (config, rest) => void (config.Entrypoint = wordsOf(rest)),
  CMD: (config, rest) => void (config.Cmd = wordsOf(rest)),
  EXPOSE: ({ ExposedPorts = {} }, rest) => void (ExposedPorts[`${rest}/tcp`] = {}),
  VOLUME({ Volumes = {} }, rest) {
    for (const path of wordsOf(rest)) Volumes[path] = {};
  },
  ENV: ({ Env = [] }, rest) => void Env.push(pairOf(rest).join("=")),
  LABEL({ Labels = {} }, rest) {
    const [name, value] = pairOf(rest);
    Labels[name] = value;
  },
  HEALTHCHECK(config, rest) {
    const [, options = "", command = ""] = /^((?:--\S+\s+)*)CMD\s+(.*)$/.exec(rest) ?? [];
    const seconds = (name: string) => Number(match(options, new RegExp(`--${name}=(\\d+)s`))) * NANOSECONDS;
    config.Healthcheck = {
      Test: ["CMD", ...wordsOf(command)],
      Interval: seconds("interval"),
      Timeout: seconds("timeout"),
      StartPeriod: seconds("start-period"),
      Retries: Number(match(options, /--retries=(\d+)/)),
    };
  },
};

/** Whole instructions: comments are out, and lines that go on are joined. */
function instructionsOf(dockerfile: string): Instruction[] {
  const text = dockerfile.replaceAll(/^\s*#.*\n/gm, "").replaceAll(/\\\n\s*/g, "");
  return text.split("\n").flatMap((line) => {
    if (line.trim() === "") return [];
    const [, word = "", rest = ""] = /^([A-Z]+)\s+(.*\S)\s*$/.exec(line) ?? [];
    if (word === "") throw new Error(`the Dockerfile has a line that is no instruction: ${line}`);
    return [{ word, rest }];
  });
}

function stageOf(instructions: readonly Instruction[], stage: string): Instruction[] {
  const isStart = ({ word }: Instruction) => word === "FROM";
  const start = instructions.findIndex((one) => isStart(one) && one.rest.endsWith(` AS ${stage}`));
  if (start === -1) throw new Error(`the Dockerfile has no stage ${stage}`);
  const after = instructions.slice(start + 1);
  const end = after.findIndex(isStart);
  return end === -1 ? after : after.slice(0, end);
}

function argument(args: Readonly<Record<string, string>>, name: string): string {
  const value = args[name];
  if (value === undefined) throw new Error(`the Dockerfile uses \${${name}}, which is not given`);
  return value;
}

/** The words of the form `["a", "b"]`; the other one is run by a shell. */
function wordsOf(rest: string): string[] {
  const words: unknown = JSON.parse(rest);
  if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  throw new Error(`the Dockerfile has ${rest} in the place of an array of texts`);
}

function pairOf(rest: string): [name: string, value: string] {
  const [, name = "", value = ""] = /^([\w.-]+)=([^\s"'\\$]+)$/.exec(rest) ?? [];
  if (name === "") throw new Error(`the Dockerfile has ${rest} in the place of NAME=VALUE without quotes`);
  return [name, value];
}

function match(text: string, pattern: RegExp): string {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`the Dockerfile's HEALTHCHECK lacks ${pattern.source}`);
  return found;
}
