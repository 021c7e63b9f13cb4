import { EngineError, type ErrorCode } from "../../../core/errors.ts";

/** What the helper refuses a request with. */
export class HelperRefusal extends Error {
  readonly word: string;

  constructor(word: string, text: string) {
    super(text);
    this.name = "HelperRefusal";
    this.word = word;
  }
}

type Refused = { code: ErrorCode; message: string };

const REFUSALS: Readonly<Record<string, Refused>> = {
  not_found: { code: "file_not_found", message: "there is no such file" },
  not_a_directory: { code: "conflict", message: "it, or a part of its path, is not a directory" },
  is_a_directory: { code: "conflict", message: "it is a directory" },
  not_a_file: { code: "conflict", message: "only regular files can be read and written here" },
  forbidden: { code: "forbidden", message: "the sandbox's agent may not do this" },
  read_only: { code: "forbidden", message: "this part of the sandbox is read-only" },
  in_memory: {
    code: "forbidden",
    message: "this part of the sandbox lies in memory: only commands in it can write there",
  },
  no_space: { code: "insufficient_storage", message: "the sandbox's disk is full" },
  name_too_long: { code: "invalid_parameter", message: "the path, or a name in it, is too long" },
  invalid: { code: "invalid_parameter", message: "the sandbox's file system does not take this name" },
  loop: { code: "conflict", message: "the path has too many symbolic links, or one that may not be followed" },
  changed: { code: "conflict", message: "the sandbox changed it meanwhile" },
  busy: { code: "conflict", message: "it is in use" },
  too_large: { code: "body_too_large", message: "the file is too large" },
  too_many: { code: "conflict", message: "the directory has too many entries to be listed" },
  precondition: { code: "precondition_failed", message: "the condition does not hold" },
  gone: { code: "unavailable", message: "the sandbox's machine has ended" },
  not_entered: { code: "unavailable", message: "the sandbox's files can't be reached" },
};

/** For the client. `path` as it was asked for. */
export function engineErrorOf(refusal: HelperRefusal, path: string): EngineError {
  const { word, message: text } = refusal;
  const shown = JSON.stringify(path.toWellFormed());
  if (word === "range") {
    return new EngineError("range_not_satisfiable", `${shown} has ${text} bytes: nothing of it is in that range`, {
      headers: { "Content-Range": `bytes */${text}` },
    });
  }
  const known = REFUSALS[word];
  if (known === undefined) return new EngineError("internal", `${shown}: ${text}`, { cause: refusal });
  const why = text === "" ? known.message : `${known.message} (${text.trim()})`;
  return new EngineError(known.code, `${shown}: ${why}`, { cause: refusal });
}
