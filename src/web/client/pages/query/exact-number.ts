/** An integer that JavaScript has no number for, as it is written. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
