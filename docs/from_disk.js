// The search of the site works in a worker, and browsers start no worker for a page that is opened
// from a disk. There a hidden frame does the same work.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = inside.document.createElement("script");
      script.src = url;
      this.ready = new Promise((done) => (script.onload = done));
      inside.document.body.append(script);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.onmessage?.({ data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
