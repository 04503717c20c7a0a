import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one node in a folder: prints its port, and ends when its standard input does. */
public class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    File folder = new File(arguments[0]);
    MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(new Configuration(), folder);
    try (MiniDFSCluster cluster = builder.nameNodePort(0).numDataNodes(1).build()) {
      cluster.waitActive();
      System.out.println("PORT " + cluster.getNameNodePort());
      System.out.flush();
      while (System.in.read() >= 0) {
        continue;
      }
    }
  }
}
