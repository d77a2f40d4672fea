// What scrolls is reached by Tab, or a keyboard could not scroll it: Svelte warns of every such place.
const warningFilter = ({ code }) => code !== "a11y_no_noninteractive_tabindex";

export default { compilerOptions: { runes: true, warningFilter } };
