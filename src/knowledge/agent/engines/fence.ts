import type { Random } from "../../../core/random.ts";

/**
 * Marks what others wrote (rows, memories, names of columns) as data when a model is shown it. The mark is drawn for each
 * run, so that no text can end its own fence.
 */
export class Fence {
  readonly mark: string;

  constructor(random: Random) {
    this.mark = Buffer.from(random.fill(new Uint8Array(12))).toString("hex");
  }

  around(origin: string, text: string): string {
    return `<<data ${this.mark} from ${origin}>>\n${text}\n<<end ${this.mark}>>`;
  }
}
