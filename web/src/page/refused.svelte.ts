/** Whether the server asked for an API key that it has not got, or did not know the one it got. */
export const refused = $state({ key: false });
