export type ComboboxProps = {
  label: string;
  isLabelHidden?: boolean;
  value: string;
  options: readonly { value: string; title: string }[];
  onChange: (value: string) => void;
  placeholder?: string;
  class?: string;
};
