import { CliError, EXIT } from "../../../client/failure.ts";

/** One input failed, for a reason of its own: others may go on. */
export class FileError extends CliError {
  constructor(message: string, cause?: unknown) {
    super(message, EXIT.failed, { cause });
    this.name = "FileError";
  }
}
